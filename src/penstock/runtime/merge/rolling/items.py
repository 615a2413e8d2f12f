"""Items of queries that are all rolled up from what is stored of one relation.

Every query goes through all rows of the relation, and has groups in no order of slots. So work is shared out by
windows, as many together as fit a task's memory; and windows that are left over, or too few, by queries: each of these
items reads the rows again, and rolls up some of the queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, pairwise

import numpy as np

from penstock.relations.closing import Finish, closing_of
from penstock.relations.relation import Relation
from penstock.runtime.merge.items import LEAST_ROWS, TOGETHER, Cut, Due, MergeItem, due_items, whole_windows
from penstock.runtime.settings import TaskSettings

Array = np.ndarray
CODE, STATE, ROW = 4, 24, 64  # bytes of a row that is rolled up: of an attribute, of a state in two orders, and besides
FEW = 8  # queries that are worth reading the rows again for


def rolled_up(one: Due) -> bool:
    """Whether all queries are rolled up from the same rows."""
    sources, window = one.reading.sources, one.reading.window
    if len(sources) != 1 or window.landmark or window.counted or any(wanting.details for wanting in one.wanting):
        return False
    relation = sources[0].relation
    return not any(isinstance(closing_of(wanting.groups.wanted, relation), Finish) for wanting in one.wanting)


def rolled_items(number: int, one: Due, settings: TaskSettings, parallelism: int) -> Iterator[MergeItem]:
    """Windows of all queries together, and windows left over query by query."""
    memory = settings.task_memory // rolled_bytes(one.reading.sources[0].relation)
    if not len(one.windows) or int(one.rows.max()) > memory:
        yield from due_items(number, one, memory, settings)
        return
    names, part = tuple(wanting.query.name for wanting in one.wanting), count()
    shared = len(one.windows) - _left_over(one, len(names), parallelism)
    share = -(-int(one.rows[:shared].sum()) // parallelism)
    together = 1 << 62 if one.reading.window.tumbling else TOGETHER
    for first, beyond, rows in whole_windows(one.windows[:shared], one.rows[:shared], min(memory, share), together):
        yield MergeItem(number, names, Cut(next(part), first, beyond, 0, settings.slots, rows=rows * len(names)))
    for first, beyond, rows in whole_windows(one.windows[shared:], one.rows[shared:], memory, together):
        whole = Cut(0, first, beyond, 0, settings.slots)
        for some in dealt(names, parallelism):
            yield MergeItem(number, some, replace(whole, part=next(part), rows=rows * len(some)))


def _left_over(one: Due, queries: int, parallelism: int) -> int:
    """How many of the last windows are shared out by queries, so that all tasks have as much to do."""
    if parallelism < 2 or queries < FEW * parallelism or int(one.rows.sum()) < LEAST_ROWS:
        return 0
    return len(one.windows) % parallelism


def dealt(names: Sequence[str], parts: int) -> Iterator[tuple[str, ...]]:
    """Neighbours together: they mostly have an attribute in common."""
    edges = [len(names) * number // parts for number in range(parts + 1)]
    for start, stop in pairwise(edges):
        if start < stop:
            yield tuple(names[start:stop])


def rolled_bytes(relation: Relation) -> int:
    """Memory that a row takes while queries are rolled up from it."""
    words = sum(max(1, form.words) for form in relation.shape.forms(relation.states).values())
    return CODE * len(relation.attributes) + STATE * (1 + words) + ROW
