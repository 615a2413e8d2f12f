"""Items of queries that are all rolled up from what is stored of one relation.

Every query goes through all rows of the relation, and has groups in no order of slots. So work is shared out by queries
(`rolling.dealing`), each task reading all rows; or, where that takes longer than to close each query in each task, by
windows, as many together as fit a task's memory, and only those left over by queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count, pairwise

import numpy as np

from penstock.relations.closing import Finish, closing_of
from penstock.runtime.merge.items import TOGETHER, Cut, Due, MergeItem, Wanting, whole_windows
from penstock.runtime.merge.rolling.dealing import dealt
from penstock.runtime.merge.rolling.passes import has_few_groups
from penstock.runtime.settings import TaskSettings
from penstock.sharing.model.closings import by_queries, rolled_bytes
from penstock.state.protocol import Results

Array = np.ndarray


def rolled_up(one: Due) -> bool:
    """Whether all queries are rolled up from the same rows."""
    sources, window = one.reading.sources, one.reading.window
    if len(sources) != 1 or window.landmark or window.counted or any(wanting.details for wanting in one.wanting):
        return False
    relation = sources[0].relation
    return not any(isinstance(closing_of(wanting.groups.wanted, relation), Finish) for wanting in one.wanting)


def rolled_items(
    number: int, one: Due, settings: TaskSettings, parallelism: int, before: Mapping[str, Results]
) -> Iterator[MergeItem]:
    """Windows of all queries together, windows left over query by query, large ones in passes."""
    memory, part = max(1, settings.task_memory // rolled_bytes(one.reading.sources[0].relation)), count()
    large = one.rows > memory
    edges = [0, *(np.flatnonzero(np.diff(large)) + 1).tolist(), len(large)]
    for start, stop in pairwise(edges):  # in a row are windows that fit, or that do not
        some = replace(one, windows=one.windows[start:stop], rows=one.rows[start:stop])
        if start == stop:
            continue
        if large[start]:
            for window, rows in zip(some.windows.tolist(), some.rows.tolist(), strict=True):
                whole = Cut(0, window, window + 1, 0, settings.slots, passes=-(-rows // memory))
                yield from _in_passes(number, one, rows, whole, parallelism, part, before)
        else:
            yield from _whole(number, some, memory, settings, parallelism, part, before)


def _whole(
    number: int,
    one: Due,
    memory: int,
    settings: TaskSettings,
    parallelism: int,
    part: Iterator[int],
    before: Mapping[str, Results],
) -> Iterator[MergeItem]:
    """Windows that fit, as many together as do."""
    names = tuple(wanting.query.name for wanting in one.wanting)
    windows, attributes = len(one.windows), len(one.reading.sources[0].relation.attributes)
    shared = windows - by_queries(windows, len(names), int(one.rows.sum()), attributes, parallelism)
    left_to = list(dealt(one, one.wanting, parallelism, before)) if shared < windows else []
    # Half a window more: shares of few windows differ, and what is left over would be an item of its own.
    share = -(-int(one.rows[:shared].sum()) // parallelism) + int(one.rows.max()) // 2
    together = 1 << 62 if one.reading.window.tumbling else TOGETHER
    for first, beyond, rows in whole_windows(one.windows[:shared], one.rows[:shared], min(memory, share), together):
        yield MergeItem(number, names, Cut(next(part), first, beyond, 0, settings.slots, rows=rows))
    for first, beyond, rows in whole_windows(one.windows[shared:], one.rows[shared:], memory, together):
        whole = Cut(0, first, beyond, 0, settings.slots, rows=rows)
        for some in left_to:  # each is as much to do as the others
            alike = len(names) / (len(left_to) * len(some))
            yield MergeItem(number, some, replace(whole, part=next(part)), alike)


def _in_passes(
    number: int,
    one: Due,
    rows: int,
    whole: Cut,
    parallelism: int,
    part: Iterator[int],
    before: Mapping[str, Results],
) -> Iterator[MergeItem]:
    """A window whose rows are too many for a task: passes are items of their own where each makes whole groups."""
    few, limited, others = list[Wanting](), list[Wanting](), list[Wanting]()
    for wanting in one.wanting:
        if has_few_groups(wanting.groups.wanted, one.reading.sources[0].relation, one.blocks):
            few.append(wanting)
        else:
            (others if wanting.query.limit is None else limited).append(wanting)
    for same, partial in ((few, True), (limited, False)):
        for some in dealt(one, same, parallelism, before):
            cut = replace(whole, part=next(part), turn=None, rows=rows, partial=partial)
            yield MergeItem(number, some, cut)
    for turn in range(whole.passes if others else 0):
        cut = replace(whole, part=next(part), turn=turn, rows=rows // whole.passes)
        yield MergeItem(number, tuple(wanting.query.name for wanting in others), cut)
