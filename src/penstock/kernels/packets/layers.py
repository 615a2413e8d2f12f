"""Finds the layers of a packet: where its network and transport headers are, and what stands before them.

    PacketRecords (bytes, link type) ──► locate ──► layers: a row of 16 numbers a packet, a line of the cache
                                          │
                       link: frame ──► ethertype ──► ip: addresses, protocol ──► tunnel: frame again

Nothing is copied here; `kernels.packets.fields` takes values out of the packets. A header that cannot be right, or that
ends too early although the packet was captured whole, is a *fault*. What the snap length cut off is just missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from penstock.kernels.jit import I32, I64, U8, kernel, part, ro, rw
from penstock.kernels.packets.ip import ip_header, transport
from penstock.kernels.packets.layout import (
    DEPTH,
    END,
    ETHERTYPE,
    FAULT,
    FRAGMENT,
    FRAME,
    HIDDEN,
    KIND,
    LINK_CUT,
    LINK_UNKNOWN,
    NET,
    NO_HEADER,
    NONE,
    OUTER,
    PROTO,
    STOP,
    TRANSPORT,
    VERSION,
    WHOLE,
    WIDTH,
)
from penstock.kernels.packets.link import IPV4, IPV6, ethernet, link_header, network_type
from penstock.kernels.packets.tunnel import inside, tunnel

DEEPEST = 8  # tunnels within tunnels
LONGEST_PACKET = 1 << 30


@part
def forget(layers, i):
    layers[i, NET], layers[i, VERSION], layers[i, PROTO] = NONE, NONE, NONE
    layers[i, TRANSPORT], layers[i, FRAGMENT], layers[i, WHOLE] = NONE, NONE, NONE
    layers[i, ETHERTYPE] = NONE


@part
def hide(layers, i):
    """The packet may be a tunnel, which the snap length does not show: what was found may be an outer packet."""
    forget(layers, i)
    layers[i, DEPTH] = NONE


@part
def enter(layers, i):
    """Go into a tunnel: what was found is the outer packet."""
    if layers[i, OUTER] < 0:
        layers[i, OUTER] = layers[i, NET]
    layers[i, DEPTH] += 1
    forget(layers, i)


@part
def walk(data, at, end, whole, link, unwrap, layers, i):
    """Fill a packet's row; `end` is the end of its captured bytes, `whole` that of the packet."""
    kind, at = link_header(data, at, end, link, layers, i)
    while True:
        kind, at = network_type(data, at, end, kind, layers, i)
        if kind == LINK_UNKNOWN or (kind == LINK_CUT and whole <= end):
            layers[i, FAULT] = -kind
        looked = unwrap if layers[i, DEPTH] < DEEPEST else int64(0)
        if (kind != IPV4 and kind != IPV6) or not ip_header(data, at, end, whole, kind, layers, i):
            cut = kind == LINK_CUT or kind == IPV4 or kind == IPV6
            if cut and layers[i, FAULT] == 0 and layers[i, FRAGMENT] < 0 and tunnel(layers[i, PROTO], looked):
                hide(layers, i)
            return
        kind, at = inside(data, whole, layers, i, looked)
        if kind == HIDDEN:
            hide(layers, i)
            return
        if kind == STOP:
            transport(data, end, whole, layers, i)
            return
        end, whole = int64(layers[i, END]), min(int64(layers[i, WHOLE]), whole)
        enter(layers, i)
        if kind == FRAME:
            kind, at = ethernet(data, at, end, layers, i)


@kernel(I64, ro(U8), ro(I64), ro(I32), ro(I64), ro(I32), ro(U8), I64, I64, rw(I32, 2))
def locate(data, at, captured, length, link, reason, rows, unwrap, layers):
    """Layers of the first `rows` records; `unwrap` has a bit for each kind of tunnel to look into. Counts faults."""
    faults = 0
    for i in range(rows):
        for field in range(WIDTH):
            layers[i, field] = NONE
        layers[i, FAULT], layers[i, DEPTH], layers[i, KIND] = 0, 0, NO_HEADER
        if reason[i] == 0:
            # A length below what was captured is wrong, the packet has what is there; one beyond all sense is bounded,
            # so that places fit their numbers.
            whole = at[i] + min(max(length[i], int64(captured[i])), int64(LONGEST_PACKET))
            walk(data, at[i], at[i] + captured[i], whole, int64(link[i]), unwrap, layers, i)
            faults += layers[i, FAULT] != 0
    return faults


def room(rows: int) -> np.ndarray[Any, Any]:
    """Room for the layers of `rows` packets."""
    return np.empty((rows, WIDTH), np.int32)
