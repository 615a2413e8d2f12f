"""Puts some packets side by side, so that the layers of many are found in one go."""

from __future__ import annotations

from numba import int64, uint64

from penstock.kernels.jit import I64, U8, kernel, part, ro, rw
from penstock.kernels.packets.capture import OUT

# Of what is put aside: how many packets, and where the bytes of the last end.
ROWS, END = range(2)


@part
def copy_bytes(data, begin, size, out, place):
    """Unsigned: numba would look at each index whether it counts from the end, and copy byte by byte."""
    for byte in range(size):
        out[place + byte] = data[begin + byte]


@kernel(I64, ro(U8), OUT, ro(I64), rw(I64), rw(U8), OUT)
def put_aside(data, records, rows, state, bytes_out, out):
    """Put these rows' packets aside, as many as there is room for; says how many. Both `records` and `out` are columns
    of `PacketRecords`."""
    for i in range(rows.shape[0]):
        row, n, place = rows[i], state[ROWS], state[END]
        begin, size = records[0][row], int64(records[1][row])
        if n == out[0].shape[0] or place + size > bytes_out.shape[0]:
            return i
        copy_bytes(data, uint64(begin), uint64(size), bytes_out, uint64(place))
        out[0][n], out[1][n], out[2][n], out[3][n] = place, records[1][row], records[2][row], records[3][row]
        out[4][n], out[5][n], out[6][n], out[7][n] = records[4][row], records[5][row], records[6][row], records[7][row]
        state[ROWS], state[END] = n + 1, place + size
    return rows.shape[0]
