"""Finds what is inside an IP packet: GRE, IP in IP, VXLAN."""

from __future__ import annotations

from numba import int64

from penstock.kernels.jit import part
from penstock.kernels.packets.layout import END, FRAGMENT, FRAME, HIDDEN, LINK_CUT, PROTO, STOP, TRANSPORT, WHOLE, short
from penstock.kernels.packets.link import (
    IPV4,
    IPV6,
    LABELS,
    MULTICAST_LABELS,
    SERVICE_TAG,
    TAG,
    point_to_point,
)

IPIP, GRE, VXLAN = 1, 2, 4  # bits of `unwrap`
BRIDGED, PPP = 0x6558, 0x880B
VXLAN_PORT = 4789


@part
def tunnel(protocol, unwrap):
    """Whether a packet of this protocol may be a tunnel to look into; of one that is not known, any may."""
    return (
        (protocol < 0 and unwrap != 0)
        or ((protocol == 4 or protocol == 41) and unwrap & IPIP)
        or (protocol == 47 and unwrap & GRE)
        or (protocol == 17 and unwrap & VXLAN)
    )


@part
def inside(data, whole, layers, i, unwrap):
    """(ethertype or FRAME, place) of the packet inside; STOP where there is none, or it is not to be looked into.

    HIDDEN where that cannot be known, because the packet goes on to `whole` and not all of it was captured.
    """
    at, protocol, end = int64(layers[i, TRANSPORT]), layers[i, PROTO], int64(layers[i, END])
    if at < 0 or layers[i, FRAGMENT] >= 0 or not tunnel(protocol, unwrap):
        return int64(STOP), at
    if protocol == 4:
        return int64(IPV4), at
    if protocol == 41:
        return int64(IPV6), at
    kind, place = gre(data, at, end) if protocol == 47 else vxlan(data, at, end)
    if kind == HIDDEN and end >= min(whole, int64(layers[i, WHOLE])):
        kind = int64(STOP)
    return kind, place


@part
def vxlan(data, at, end):
    if at + 4 <= end and short(data, at + 2) != VXLAN_PORT:
        return int64(STOP), at
    if at + 16 > end:
        return int64(HIDDEN), at
    return (int64(FRAME), at + 16) if data[at + 8] & 8 else (int64(STOP), at)


@part
def gre(data, at, end):
    if at + 4 > end:
        return int64(HIDDEN), at
    flags, kind = int64(short(data, at)), int64(short(data, at + 2))
    version = flags & 7
    size = 4 + (4 if flags & 0x8000 else 0) + (4 if flags & 0x2000 else 0) + (4 if flags & 0x1000 else 0)
    if version == 1 and kind == PPP:
        size += 4 if flags & 0x80 else 0
        inner, place = point_to_point(data, at + size, end)
        if inner == LINK_CUT:
            return int64(HIDDEN), at
        return (inner, place) if inner >= 0 else (int64(STOP), at)
    if version != 0 or flags & 0x4000:
        return int64(STOP), at
    if kind == BRIDGED:
        return int64(FRAME), at + size
    known = kind == IPV4 or kind == IPV6 or kind == LABELS or kind == MULTICAST_LABELS
    return (kind, at + size) if known or kind == TAG or kind == SERVICE_TAG else (int64(STOP), at)
