"""Columns of a segment: values put in order, taken relative to their least, and narrowed, in one go; and back.

`state.segments.write` chooses the width, `state.segments.read` says which bytes are whose.
"""

from __future__ import annotations

from numba import types, uint8, uint16, uint32, uint64

from penstock.kernels.jit import I32, I64, U8, U16, U32, U64, kernel, ro, rw


@kernel(types.void, ro(I64), ro(I32), I64, rw(U8))
def put_1(values, order, low, out):
    for i in range(order.shape[0]):
        out[i] = uint8(values[order[i]] - low)


@kernel(types.void, ro(I64), ro(I32), I64, rw(U16))
def put_2(values, order, low, out):
    for i in range(order.shape[0]):
        out[i] = uint16(values[order[i]] - low)


@kernel(types.void, ro(I64), ro(I32), I64, rw(U32))
def put_4(values, order, low, out):
    for i in range(order.shape[0]):
        out[i] = uint32(values[order[i]] - low)


@kernel(types.void, ro(I64), ro(I32), I64, rw(U64))
def put_8(values, order, low, out):
    """Differences beyond 63 bits wrap around, and do so again when they are read."""
    for i in range(order.shape[0]):
        out[i] = uint64(values[order[i]]) - uint64(low)


PUT = {1: put_1, 2: put_2, 4: put_4, 8: put_8}
