"""The row of numbers that describes a packet's layers; all kernels of packets share it.

A place is an offset into the bytes at hand, −1 where there is none.
"""

from __future__ import annotations

from penstock.kernels.jit import part

WIDTH = 16
# Places of the IP header and of what follows it; END and WHOLE bound the IP packet: as captured, and as it was sent.
NET, TRANSPORT, END, WHOLE = range(4)
# IP version, last protocol, kind of transport header, offset of a fragment in bytes (−1: it is none).
VERSION, PROTO, KIND, FRAGMENT = range(4, 8)
# Last ethertype, tags of two VLANs, first MPLS label.
ETHERTYPE, VLAN, INNER_VLAN, MPLS = range(8, 12)
# Places of the Ethernet header and of the outermost IP header of a tunnel; tunnels around the packet; fault.
ETHERNET, OUTER, DEPTH, FAULT = range(12, 16)

NONE = -1
# What a step of the walk says in place of an ethertype. The first two are faults with their signs turned. HIDDEN: what
# says whether this is a tunnel was cut off.
LINK_CUT, LINK_UNKNOWN, STOP, FRAME = -1, -2, -3, -4
UNKNOWN, HIDDEN = -5, -6

# Kinds of transport header.
NO_HEADER, TCP, PORTS, ICMP = range(4)
# Faults; the texts are in `sources.capture.columns`.
SOUND, F_LINK_CUT, F_LINK_UNKNOWN, F_IP_CUT, F_IP_HEADER, F_IP_LENGTH, F_CHAIN, F_TCP, F_PORTS, F_ICMP = range(10)
F_TCP_HEADER = 10


@part
def short(data, at):
    """Two bytes in network order."""
    return data[at] * 256 + data[at + 1]
