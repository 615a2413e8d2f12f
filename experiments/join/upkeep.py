"""Window update and AS update of one stream, compiled (aggregation-join, Definition 4; Algorithm 1, lines 3, 4, 9, 10).

Windows are first in, first out, and so are the chains of their buckets: the oldest record of a window heads its chain.
MIN and MAX of a group come from an ordered multiset of its values: a list of distinct values, ascending. The paper
would evaluate the whole window again when the extreme leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.join import layout as at
from penstock.kernels.jit import part


@part
def add_to_window(
    streams: np.ndarray, k: int, windows: np.ndarray, heads: np.ndarray, group: int, key: int, value: int, hashed: bool
) -> None:
    """W_k ∪ {s_k}."""
    place = streams[k, at.OLDEST] + streams[k, at.SIZE]
    if place >= streams[k, at.ROOM]:
        place -= streams[k, at.ROOM]
    streams[k, at.SIZE] += 1
    streams[k, at.REACHED] = max(streams[k, at.REACHED], place + 1)
    row = streams[k, at.FIRST] + place
    windows[row, at.GROUP] = group
    windows[row, at.KEY] = key
    windows[row, at.VALUE] = value
    windows[row, at.NEXT] = at.NONE
    if hashed:
        bucket = streams[k, at.TABLE] + key % streams[k, at.BUCKETS]
        if heads[bucket, at.HEAD] == at.NONE:
            heads[bucket, at.HEAD] = row
        else:
            windows[heads[bucket, at.TAIL], at.NEXT] = row
        heads[bucket, at.TAIL] = row


@part
def take_oldest(streams: np.ndarray, k: int, windows: np.ndarray, heads: np.ndarray, hashed: bool) -> None:
    """W_k − {r_k}."""
    row = streams[k, at.FIRST] + streams[k, at.OLDEST]
    if hashed:
        bucket = streams[k, at.TABLE] + windows[row, at.KEY] % streams[k, at.BUCKETS]
        heads[bucket, at.HEAD] = windows[row, at.NEXT]
    windows[row, at.KEY] = at.NONE
    streams[k, at.SIZE] -= 1
    streams[k, at.OLDEST] += 1
    if streams[k, at.OLDEST] == streams[k, at.ROOM]:
        streams[k, at.OLDEST] = 0


@part
def update_set(
    streams: np.ndarray, k: int, sets: np.ndarray, heads: np.ndarray, nodes: np.ndarray, registers: np.ndarray,
    aggregates: np.ndarray, group: int, key: int, value: int, sign: int, hashed: bool,
) -> None:  # fmt: skip
    """AS_k with one record more or less. The table is hashed on J_k alone, as the paper has it (Appendix A, B_i)."""
    bucket = streams[k, at.TABLE] + key % streams[k, at.BUCKETS]
    before, row = at.NONE, heads[bucket, at.SET_HEAD]
    while row != at.NONE and (sets[row, at.GROUP] != group or sets[row, at.KEY] != key):
        before, row = row, sets[row, at.NEXT]
    if row == at.NONE:
        row = new_group(streams, k, sets, group, key)
        sets[row, at.NEXT] = heads[bucket, at.SET_HEAD]
        heads[bucket, at.SET_HEAD] = row
        before = at.NONE
    sets[row, at.COUNT] += sign
    if streams[k, at.ORDERED]:
        if sign > 0:
            put_value(sets, row, nodes, registers, value)
        else:
            drop_value(sets, row, nodes, registers, value)
    for a in range(len(aggregates)):
        if aggregates[a, at.OF_STREAM] == k:
            if aggregates[a, at.KIND] == at.SUM:
                sets[row, at.VALUES + a] += sign * value
            elif sets[row, at.COUNT]:
                end = sets[row, at.LEAST] if aggregates[a, at.KIND] == at.MIN else sets[row, at.MOST]
                sets[row, at.VALUES + a] = nodes[end, 0]
    if sets[row, at.COUNT] == 0:
        if before == at.NONE:
            heads[bucket, at.SET_HEAD] = sets[row, at.NEXT]
        else:
            sets[before, at.NEXT] = sets[row, at.NEXT]
        free_group(streams, k, sets, heads, row, hashed)


@part
def new_group(streams: np.ndarray, k: int, sets: np.ndarray, group: int, key: int) -> Any:
    row = streams[k, at.SETS_FREE]
    if row == at.NONE:
        row = streams[k, at.SETS] + streams[k, at.SETS_REACHED]
        streams[k, at.SETS_REACHED] += 1
    else:
        streams[k, at.SETS_FREE] = sets[row, at.NEXT]
    streams[k, at.SETS_SIZE] += 1
    sets[row, at.GROUP] = group
    sets[row, at.KEY] = key
    sets[row, at.LEAST] = at.NONE
    sets[row, at.MOST] = at.NONE
    sets[row, at.COUNT] = 0
    for column in range(at.VALUES, sets.shape[1]):
        sets[row, column] = 0
    return row


@part
def free_group(streams: np.ndarray, k: int, sets: np.ndarray, heads: np.ndarray, row: int, hashed: bool) -> None:
    """Nested loops run over all rows, so there the last one fills the gap."""
    streams[k, at.SETS_SIZE] -= 1
    if hashed:
        sets[row, at.KEY] = at.NONE
        sets[row, at.NEXT] = streams[k, at.SETS_FREE]
        streams[k, at.SETS_FREE] = row
        return
    streams[k, at.SETS_REACHED] -= 1
    last = streams[k, at.SETS] + streams[k, at.SETS_REACHED]
    if row != last:
        move_group(streams, k, sets, heads, last, row)


@part
def move_group(streams: np.ndarray, k: int, sets: np.ndarray, heads: np.ndarray, row: int, to: int) -> None:
    for column in range(sets.shape[1]):
        sets[to, column] = sets[row, column]
    bucket = streams[k, at.TABLE] + sets[row, at.KEY] % streams[k, at.BUCKETS]
    before = heads[bucket, at.SET_HEAD]
    if before == row:
        heads[bucket, at.SET_HEAD] = to
        return
    while sets[before, at.NEXT] != row:
        before = sets[before, at.NEXT]
    sets[before, at.NEXT] = to


# -- ordered multisets


@part
def put_value(sets: np.ndarray, row: int, nodes: np.ndarray, registers: np.ndarray, value: int) -> None:
    before, node = at.NONE, sets[row, at.LEAST]
    if node != at.NONE and nodes[sets[row, at.MOST], 0] < value:
        before, node = sets[row, at.MOST], at.NONE
    while node != at.NONE and nodes[node, 0] < value:
        before, node = node, nodes[node, at.GREATER]
    if node != at.NONE and nodes[node, 0] == value:
        nodes[node, at.TIMES] += 1
        return
    made = registers[at.NODE_FREE]
    if made == at.NONE:
        made = registers[at.NODE_REACHED]
        registers[at.NODE_REACHED] += 1
    else:
        registers[at.NODE_FREE] = nodes[made, at.GREATER]
    nodes[made, 0] = value
    nodes[made, at.TIMES] = 1
    nodes[made, at.GREATER] = node
    if before == at.NONE:
        sets[row, at.LEAST] = made
    else:
        nodes[before, at.GREATER] = made
    if node == at.NONE:
        sets[row, at.MOST] = made


@part
def drop_value(sets: np.ndarray, row: int, nodes: np.ndarray, registers: np.ndarray, value: int) -> None:
    before, node = at.NONE, sets[row, at.LEAST]
    while nodes[node, 0] != value:
        before, node = node, nodes[node, at.GREATER]
    nodes[node, at.TIMES] -= 1
    if nodes[node, at.TIMES]:
        return
    after = nodes[node, at.GREATER]
    if before == at.NONE:
        sets[row, at.LEAST] = after
    else:
        nodes[before, at.GREATER] = after
    if after == at.NONE:
        sets[row, at.MOST] = before
    nodes[node, at.GREATER] = registers[at.NODE_FREE]
    registers[at.NODE_FREE] = node
