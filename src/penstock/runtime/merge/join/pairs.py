"""Combinations of rows: of all streams by key, then of each table by class; chunk by chunk, so that any number fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.kernels.tables.joining import expand
from penstock.runtime.merge.join.fixed import TableRows
from penstock.runtime.merge.join.sides import Lists

Array = np.ndarray
ROOM = 1 << 18  # combinations at a time

Chosen = Callable[["Pairs"], Array | None]  # which combinations a condition leaves; None: all


@dataclass(frozen=True)
class Pairs:
    """Combinations: which row of each stream, and of each table, in the order of the join."""

    streams: tuple[Array, ...]
    tables: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.streams[0])

    def take(self, index: Array) -> Pairs:
        return Pairs(tuple(rows[index] for rows in self.streams), tuple(rows[index] for rows in self.tables))


def all_pairs(
    streams: Iterable[Pairs],
    tables: Sequence[TableRows],
    classes: Sequence[Array],
    owners: Sequence[int],
    chosen: Chosen,
    whole: bool = False,
) -> Iterator[Pairs]:
    """All combinations of streams, with rows of tables, that a condition leaves. Of each table, `classes` are those of
    the rows of its owner's. `whole`: those of a row of the one stream that there is come all at once."""
    for pairs in streams:
        for found in _with_tables(pairs, list(zip(tables, classes, owners, strict=True)), whole):
            left = chosen(found)
            if left is not None:
                found = found.take(np.flatnonzero(left))
            if len(found):
                yield found


def stream_pairs(lists: Lists) -> Iterator[Pairs]:
    place, sides = np.zeros(2, np.int64), len(lists.starts)
    while True:
        out = np.empty((sides, ROOM), np.int64)
        count = expand(lists.starts, lists.rows, place, out)
        if not count:
            return
        yield Pairs(tuple(np.ascontiguousarray(rows[:count]) for rows in out), ())


def _with_tables(pairs: Pairs, tables: list[tuple[TableRows, Array, int]], whole: bool) -> Iterator[Pairs]:
    """Each combination with each row of the tables."""
    if not tables:
        yield pairs
        return
    (table, classes, owner), *rest = tables
    edges = np.flatnonzero(np.diff(pairs.streams[0], prepend=-1, append=-1)) if whole else None
    for index, rows in expanded(classes[pairs.streams[owner]], table.starts, table.rows, edges):
        taken = pairs.take(index)
        yield from _with_tables(Pairs(taken.streams, (*taken.tables, rows)), rest, whole)


def expanded(of: Array, starts: Array, lists: Array, edges: Array | None = None) -> Iterator[tuple[Array, Array]]:
    """Each with all of its list, lists[starts[of] : starts[of + 1]]: which, and what it has; some at a time;
    where there are `edges` (from 0 to the end) all between two of them."""
    begin, counts = starts[of], starts[of + 1] - starts[of]
    ends = np.cumsum(counts)
    first = 0
    while first < len(of):
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + ROOM, "right")))
        if edges is not None:
            last = int(
                max(edges[np.searchsorted(edges, last, "right") - 1], edges[np.searchsorted(edges, first, "right")])
            )
        index = np.repeat(np.arange(first, last), counts[first:last])
        steps = np.arange(len(index)) - np.repeat(ends[first:last] - counts[first:last] - done, counts[first:last])
        if len(index):
            yield index, lists[np.repeat(begin[first:last], counts[first:last]) + steps]
        first = last
