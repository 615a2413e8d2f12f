"""From a frame to an ethertype: link headers, VLAN tags, MPLS labels, PPPoE, LLC.

Each step answers (ethertype, place of what follows), or one of the negative numbers of `kernels.packets.layout`.
Numbers of link types are those of the registry that pcap files use.
"""

from __future__ import annotations

from numba import int64

from penstock.kernels.jit import part
from penstock.kernels.packets.layout import (
    ETHERNET,
    ETHERTYPE,
    INNER_VLAN,
    LINK_CUT,
    LINK_UNKNOWN,
    MPLS,
    NONE,
    UNKNOWN,
    VLAN,
    short,
)

IPV4, IPV6, LABELS, MULTICAST_LABELS, SESSION = 0x0800, 0x86DD, 0x8847, 0x8848, 0x8864
TAG, SERVICE_TAG, OLD_SERVICE_TAG = 0x8100, 0x88A8, 0x9100
LEAST_TYPE = 0x600  # smaller numbers are lengths, and LLC follows


@part
def llc(data, at, end):
    if at + 3 > end:
        return int64(LINK_CUT), at
    if data[at + 2] != 3:
        return int64(UNKNOWN), at
    if data[at] == 6 and data[at + 1] == 6:
        return int64(IPV4), at + 3
    if data[at] != 0xAA or data[at + 1] != 0xAA:
        return int64(UNKNOWN), at
    if at + 8 > end:
        return int64(LINK_CUT), at
    if data[at + 3] or data[at + 4] or (data[at + 5] != 0 and data[at + 5] != 0xF8):  # a vendor's own protocol
        return int64(UNKNOWN), at
    return int64(short(data, at + 6)), at + 8


@part
def type_at(data, at, end):
    """An ethertype, or the length of an LLC frame."""
    if at + 2 > end:
        return int64(LINK_CUT), at
    kind = int64(short(data, at))
    return (kind, at + 2) if kind >= LEAST_TYPE else llc(data, at + 2, end)


@part
def point_to_point(data, at, end):
    """PPP, with or without address and control, its protocol in one byte or two."""
    if at + 2 <= end and data[at] == 0xFF and data[at + 1] == 3:
        at += 2
    if at + 2 > end:
        return int64(LINK_CUT), at
    protocol = int64(data[at])
    if protocol & 1:
        at += 1
    else:
        protocol = int64(short(data, at))
        at += 2
    if protocol == 0x21:
        return int64(IPV4), at
    if protocol == 0x57:
        return int64(IPV6), at
    return (int64(LABELS), at) if protocol == 0x281 else (int64(UNKNOWN), at)


@part
def session(data, at, end):
    """PPPoE: six bytes, then PPP."""
    return (int64(LINK_CUT), at) if at + 6 > end else point_to_point(data, at + 6, end)


@part
def family(data, at, end):
    """Loopback: a number of the capturing system, in its byte order."""
    if at + 4 > end:
        return int64(LINK_CUT), at
    number = int64(data[at]) if data[at] else int64(data[at + 3])
    if number == 2:
        return int64(IPV4), at + 4
    if number == 10 or number == 24 or number == 28 or number == 30:
        return int64(IPV6), at + 4
    return int64(UNKNOWN), at + 4


@part
def bare(data, at, end):
    """An IP packet of either version; what is neither is judged as IPv4."""
    if at >= end:
        return int64(LINK_CUT), at
    return (int64(IPV6), at) if data[at] >> 4 == 6 else (int64(IPV4), at)


@part
def cooked_type(data, kind, at, end):
    """What the protocol field of a Linux cooked capture says; below the ethertypes, 4 is LLC."""
    if kind >= LEAST_TYPE:
        return kind, at
    return llc(data, at, end) if kind == 4 else (int64(UNKNOWN), at)


@part
def cooked(data, at, end):
    if at + 16 > end:
        return int64(LINK_CUT), at
    return cooked_type(data, int64(short(data, at + 14)), at + 16, end)


@part
def ethernet(data, at, end, layers, i):
    if at + 14 > end:
        return int64(LINK_CUT), at
    if layers[i, ETHERNET] < 0:
        layers[i, ETHERNET] = at
    return type_at(data, at + 12, end)


@part
def link_header(data, at, end, link, layers, i):
    """The first header of a captured packet."""
    if link == 1:
        return ethernet(data, at, end, layers, i)
    if link == 113:
        return cooked(data, at, end)
    if link == 276:  # cooked, second version
        if at + 20 > end:
            return int64(LINK_CUT), at
        return cooked_type(data, int64(short(data, at)), at + 20, end)
    if link == 101 or link == 12 or link == 14:
        return bare(data, at, end)
    if link == 228:
        return int64(IPV4), at
    if link == 229:
        return int64(IPV6), at
    if link == 0 or link == 108:
        return family(data, at, end)
    if link == 9 or link == 50:
        return point_to_point(data, at, end)
    if link == 204:  # PPP after a byte for the direction
        return point_to_point(data, at + 1, end)
    if link == 51:
        return session(data, at, end)
    if link == 104:  # Cisco HDLC
        return (int64(LINK_CUT), at) if at + 4 > end else (int64(short(data, at + 2)), at + 4)
    return (int64(LABELS), at) if link == 219 else (int64(LINK_UNKNOWN), at)


@part
def labels(data, at, end, layers, i):
    """MPLS: the first label is remembered; what follows the last shows by its first half byte."""
    while True:
        if at + 4 > end:
            return int64(LINK_CUT), at
        if layers[i, MPLS] < 0:
            layers[i, MPLS] = int64(short(data, at)) << 4 | int64(data[at + 2]) >> 4
        at += 4
        if data[at - 2] & 1:
            break
    if at >= end:
        return int64(LINK_CUT), at
    version = data[at] >> 4
    if version == 4:
        return int64(IPV4), at
    return (int64(IPV6), at) if version == 6 else (int64(UNKNOWN), at)


@part
def network_type(data, at, end, kind, layers, i):
    """Pass over tags, labels and sessions; of a header that is cut, the ethertype before it is not the last."""
    while kind >= 0:
        layers[i, ETHERTYPE] = kind
        if kind == TAG or kind == SERVICE_TAG or kind == OLD_SERVICE_TAG:
            if at + 4 > end:
                kind = int64(LINK_CUT)
                break
            tag = int64(short(data, at)) & 0xFFF
            if layers[i, VLAN] < 0:
                layers[i, VLAN] = tag
            elif layers[i, INNER_VLAN] < 0:
                layers[i, INNER_VLAN] = tag
            kind, at = type_at(data, at + 2, end)
        elif kind == LABELS or kind == MULTICAST_LABELS:
            kind, at = labels(data, at, end, layers, i)
        elif kind == SESSION:
            kind, at = session(data, at, end)
        else:
            break
    if kind == LINK_CUT:
        layers[i, ETHERTYPE] = NONE
    return kind, at
