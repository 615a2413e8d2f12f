"""Reads IP headers of both versions, extension headers, fragments, and the transport header that follows."""

from __future__ import annotations

from numba import int64

from penstock.kernels.jit import part
from penstock.kernels.packets.layout import (
    END,
    F_CHAIN,
    F_ICMP,
    F_IP_CUT,
    F_IP_HEADER,
    F_IP_LENGTH,
    F_PORTS,
    F_TCP,
    F_TCP_HEADER,
    FAULT,
    FRAGMENT,
    ICMP,
    KIND,
    NET,
    NO_HEADER,
    NONE,
    PORTS,
    PROTO,
    TCP,
    TRANSPORT,
    VERSION,
    WHOLE,
    short,
)
from penstock.kernels.packets.link import IPV4

HOP_BY_HOP, ROUTING, FRAGMENTED, AUTHENTICATION, DESTINATION = 0, 43, 44, 51, 60
MOBILITY, HOST_IDENTITY, SHIM, NOTHING = 135, 139, 140, 59


@part
def ip_header(data, at, end, whole, kind, layers, i):
    """Fill in what the IP header says; False if what follows it cannot be found."""
    version = 4 if kind == IPV4 else 6
    if at < end and (data[at] >> 4 != version or (version == 4 and data[at] & 15 < 5)):
        layers[i, FAULT] = F_IP_HEADER
        return False
    if version == 4 and at + 4 <= end and 0 < short(data, at + 2) < int64(data[at] & 15) * 4:
        layers[i, FAULT] = F_IP_LENGTH
        return False
    if at + (20 if version == 4 else 40) > end:
        return cut_header(data, at, end, whole, version, layers, i)
    return ipv4(data, at, end, whole, layers, i) if version == 4 else ipv6(data, at, end, whole, layers, i)


@part
def cut_header(data, at, end, whole, version, layers, i):
    """Of a header that is not all there, what is."""
    if whole <= end:
        layers[i, FAULT] = F_IP_CUT
    if at < end:
        layers[i, NET], layers[i, VERSION], layers[i, END] = at, version, end
        if version == 4 and at + 4 <= end:
            bound(at, int64(short(data, at + 2)), end, whole, layers, i)
        if version == 4 and at + 10 <= end and data[at + 9] != AUTHENTICATION:
            layers[i, PROTO] = data[at + 9]
        if version == 6 and at + 7 <= end:
            bound(at, total_length(data, at), end, whole, layers, i)
            if not extension(data[at + 6]):
                layers[i, PROTO] = data[at + 6]
    return False


@part
def bound(at, total, end, whole, layers, i):
    """The end of the IP packet; where its length is 0, set aside for the network card, that of the frame."""
    stop = whole if total == 0 else at + total
    layers[i, WHOLE], layers[i, END] = stop, min(stop, end)


@part
def ipv4(data, at, end, whole, layers, i):
    size, total = int64(data[at] & 15) * 4, int64(short(data, at + 2))
    layers[i, NET], layers[i, VERSION], layers[i, PROTO] = at, 4, data[at + 9]
    bound(at, total, end, whole, layers, i)
    place = int64(short(data, at + 6))
    if place & 0x3FFF:
        layers[i, FRAGMENT] = (place & 0x1FFF) * 8
    layers[i, TRANSPORT] = at + size if layers[i, FRAGMENT] <= 0 else NONE
    if layers[i, PROTO] == AUTHENTICATION and layers[i, TRANSPORT] >= 0:
        return chain(data, at + size, int64(AUTHENTICATION), end, whole, layers, i)
    return True


@part
def total_length(data, at):
    """Bytes of an IPv6 packet; 0 where its header does not say, because there are more than it can say."""
    payload = int64(short(data, at + 4))
    return payload + 40 if payload or data[at + 6] == NOTHING else int64(0)


@part
def ipv6(data, at, end, whole, layers, i):
    layers[i, NET], layers[i, VERSION] = at, 6
    bound(at, total_length(data, at), end, whole, layers, i)
    return chain(data, at + 40, int64(data[at + 6]), end, whole, layers, i)


@part
def extension(protocol):
    return (
        protocol == HOP_BY_HOP
        or protocol == ROUTING
        or protocol == FRAGMENTED
        or protocol == DESTINATION
        or protocol == AUTHENTICATION
        or protocol == MOBILITY
        or protocol == HOST_IDENTITY
        or protocol == SHIM
    )


@part
def chain(data, at, protocol, end, whole, layers, i):
    """Pass over extension headers; each is longer than nothing, so the packet's end is reached."""
    layers[i, PROTO], first = NONE, True
    while (first and protocol == AUTHENTICATION) or (layers[i, VERSION] == 6 and extension(protocol)):
        first = False
        if at + 8 > layers[i, END]:
            if layers[i, WHOLE] <= end or whole <= end:
                layers[i, FAULT] = F_CHAIN
            return False
        following, size = int64(data[at]), (int64(data[at + 1]) + 1) * 8
        if protocol == FRAGMENTED:
            size = int64(8)
            if short(data, at + 2) & 0xFFF9:  # else nothing of the packet is elsewhere
                layers[i, FRAGMENT] = short(data, at + 2) & 0xFFF8
        elif protocol == AUTHENTICATION:
            size = (int64(data[at + 1]) + 2) * 4
        protocol = following
        at += size
        if layers[i, FRAGMENT] > 0:
            layers[i, PROTO], layers[i, TRANSPORT] = protocol, NONE
            return True
    layers[i, PROTO], layers[i, TRANSPORT] = protocol, at
    return True


@part
def judge(layers, i, need, fault, end, whole):
    """Whether the transport header is all there; what the snap length cut off is no fault."""
    if layers[i, TRANSPORT] + need > layers[i, END] and (layers[i, WHOLE] <= end or whole <= end):
        layers[i, FAULT] = fault


@part
def tcp(data, end, whole, layers, i):
    """A header that says it is shorter than any can be has ports, and no more that can be trusted."""
    at = int64(layers[i, TRANSPORT])
    layers[i, KIND] = TCP
    if at + 13 <= layers[i, END] and data[at + 12] >> 4 < 5:
        layers[i, KIND], layers[i, FAULT] = PORTS, F_TCP_HEADER
    else:
        judge(layers, i, 20, F_TCP, end, whole)


@part
def transport(data, end, whole, layers, i):
    """What the transport header is, if the packet has its beginning."""
    protocol = layers[i, PROTO]
    layers[i, KIND] = NO_HEADER
    if layers[i, TRANSPORT] < 0:
        return
    if protocol == 6:
        tcp(data, end, whole, layers, i)
    elif protocol == 17 or protocol == 132 or protocol == 136 or protocol == 33:
        layers[i, KIND] = PORTS
        judge(layers, i, 8, F_PORTS, end, whole)
    elif protocol == 1 or protocol == 58:
        layers[i, KIND] = ICMP
        judge(layers, i, 4, F_ICMP, end, whole)
