"""Instants of a join cut into items that fit a task: several together, which share what they read, or parts of one.

Neighbouring instants hold mostly the same rows, so an item has as many as fit, but for a share of them for each task;
it is joined and finished in one task (`turn` None). An instant that is too large, or alone with many rows, is cut into
parts, whose groups are merged after that (`spread`):

| parts | where |
| --- | --- |
| by slot | the rows of all streams stand by the key of the join: a part reads its own rows alone |
| by hash of the key | for memory, where rows stand otherwise |
| by rows of the largest side | a hot key would be one task's alone, or there is no key |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, product

import numpy as np

from penstock.runtime.merge.items import TOGETHER, Cut, MergeItem, by_slots
from penstock.runtime.merge.join.living.fit import living_bytes, takes
from penstock.runtime.merge.join.reading import JoinDue, JoinReading, SideReading
from penstock.runtime.settings import TaskSettings
from penstock.sharing.model.closings import LEAST_ROWS

Array = np.ndarray
ALONE = 500_000  # rows of an instant that several tasks share, if there are not as many instants as tasks


def join_items(number: int, one: JoinDue, settings: TaskSettings, parallelism: int) -> Iterator[MergeItem]:
    """All items of a join."""
    (wanting,) = one.wanting
    name, living = wanting.query.name, takes(wanting.query, one.reading, (part.wanted for part in wanting.parts))
    memory = max(1, settings.task_memory // (living_bytes(one.reading) if living else 2 * one.bytes_a_row))
    tasks, part = parallelism if int(one.added.sum()) > LEAST_ROWS else 1, count()
    for first, beyond, size in _together(one, memory, min(TOGETHER, -(-len(one.windows) // tasks))):
        whole = Cut(0, first, beyond, 0, settings.slots, None, 1, size)
        shares = tasks if size > ALONE and len(one.windows) < tasks else 1
        cuts = [whole] if shares == 1 and size <= memory else _parts(one, whole, shares, -(-size // memory))
        for cut in cuts:
            yield MergeItem(number, (name,), replace(cut, part=next(part)))


def _together(one: JoinDue, memory: int, most: int) -> Iterator[tuple[int, int, int]]:
    """(first, beyond, rows): neighbouring instants, as many as fit, at least one. The first of them brings all its
    rows, each other one those that the one before has not."""
    start = 0
    while start < len(one.windows):
        sizes = np.cumsum(np.append(one.rows[start], one.added[start + 1 : start + most]))
        stop = start + max(1, int(np.searchsorted(sizes, memory, "right")))
        yield int(one.windows[start]), int(one.windows[stop - 1]) + 1, int(sizes[stop - start - 1])
        start = stop


def _parts(one: JoinDue, whole: Cut, shares: int, passes: int) -> Iterator[Cut]:
    """`shares` for tasks, `passes` for memory, at least."""
    if _slotted(one.reading) and not one.hot:
        yield from by_slots(whole, max(shares, passes))
        return
    passes = passes if one.reading.sides[0].side.key else 1
    slices = max(1, -(-shares // passes))
    for turn, piece in product(range(passes), range(slices)):
        cut = replace(whole, turn=turn, passes=passes, rows=whole.rows // (passes * slices))
        yield replace(cut, slice=piece, slices=slices)


def _slotted(reading: JoinReading) -> bool:
    """Whether rows of equal keys stand in the same slot in all streams. The last records are those of all slots."""
    return all(_is_placed(one) for one in reading.streams) and all(
        source.relation.attributes[: source.relation.slots] == one.side.key
        for one in reading.streams
        for source in one.sources
    )


def _is_placed(one: SideReading) -> bool:
    return bool(one.side.key) and one.placed == one.side.key and not one.side.window.counted
