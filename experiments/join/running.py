"""Algorithm 1, compiled: one loop for the late plan and all early ones, for any number of streams.

Mended as docs/reproduce.md says: which of W_j and AS_j is asked depends on S_j, and decrements update AS_out.
"""

from __future__ import annotations

import numpy as np

from experiments.join import layout as at
from experiments.join.joining import join_record, refresh
from experiments.join.upkeep import add_to_window, take_oldest, update_set
from penstock.kernels.jit import I64, kernel, part, ro, rw


@kernel(
    I64, rw(I64, 2), rw(I64, 2), rw(I64, 2), rw(I64, 2), rw(I64, 2), rw(I64, 2), rw(I64), rw(I64), rw(I64, 2),
    ro(I64, 2), ro(I64, 2), I64, I64, I64,
)  # fmt: skip
def process(
    streams: np.ndarray, windows: np.ndarray, sets: np.ndarray, nodes: np.ndarray, heads: np.ndarray, outs: np.ndarray,
    tops: np.ndarray, registers: np.ndarray, levels: np.ndarray, aggregates: np.ndarray, events: np.ndarray,
    start: int, bound: int, hashed: int,
) -> int:  # fmt: skip
    """Take in events from `start` on; the number of the first one that AS_out may have no room for.

    It can have `bound` groups at most, whatever comes.
    """
    method = hashed != 0
    for number in range(start, len(events)):
        k = events[number, at.STREAM]
        if len(outs) < bound and len(outs) < registers[at.OUT_SIZE] + most_groups(streams, k):
            return number
        if events[number, at.SIGN] > 0:
            sign = 1
            group, key = events[number, at.EVENT_GROUP], events[number, at.EVENT_KEY]
            value = events[number, at.EVENT_VALUE]
            if streams[k, at.EARLY]:
                update_set(streams, k, sets, heads, nodes, registers, aggregates, group, key, value, sign, method)
            add_to_window(streams, k, windows, heads, group, key, value, method)
        else:
            sign = -1
            row = streams[k, at.FIRST] + streams[k, at.OLDEST]
            group, key, value = windows[row, at.GROUP], windows[row, at.KEY], windows[row, at.VALUE]
            if streams[k, at.EARLY]:
                update_set(streams, k, sets, heads, nodes, registers, aggregates, group, key, value, sign, method)
            take_oldest(streams, k, windows, heads, method)
        join_record(
            streams, k, windows, sets, heads, outs, tops, registers, levels, aggregates, group, key, value, sign, method
        )
        if sign < 0:
            refresh(streams, windows, sets, heads, outs, registers, aggregates, method)
    return len(events)


@part
def most_groups(streams: np.ndarray, k: int) -> int:
    """Groups that one record can add to AS_out at most."""
    most = 1
    for j in range(len(streams)):
        if j != k:
            most *= streams[j, at.SETS_SIZE] if streams[j, at.EARLY] else streams[j, at.SIZE]
    return most
