"""Measure what roll-ups and results cost on this machine, and what both take of each item, however few rows it has.

The engine's own `Rolling` runs here over stored rows of several attributes, some of many values and some of few. A
roll-up that gives few groups and one that gives many tell what a row costs and what a group. A window that closes with
a query for each pair of attributes, from the files to the files of results, tells the rest: what coding an attribute
costs, and what a query takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np

from penstock.logical.query import Query
from penstock.relations.relation import Relation, relation_of
from penstock.relations.storage import StoredSource
from penstock.relations.uniting import union_of
from penstock.runtime.merge.inputs import Piece
from penstock.runtime.merge.item import merge_item
from penstock.runtime.merge.items import Cut, Part, Reading, Wanting
from penstock.runtime.merge.merge import Merge
from penstock.runtime.merge.rolling.rolling import Rolling
from penstock.runtime.merge.windows import TaskSegments, pane_pieces
from penstock.runtime.meter import FINISH, ROLL
from penstock.runtime.profile.trials import (
    EVERY,
    FEW,
    LEAST,
    LEAST_COLUMN,
    NAMES,
    SPAN,
    Trial,
    asked,
    middle,
    resolved,
    timed,
)
from penstock.sharing.model.partial_groups import columns_of
from penstock.sharing.model.unit_costs import PerRow
from penstock.sinks.folder import STAGED
from penstock.sinks.parquet import ParquetSink
from penstock.sinks.schema import result_schema
from penstock.state.protocol import Counts
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray
ROWS = 1 << 17
KEYS = 6
# How many values attributes have: pairs with the first give as many groups as there are rows, the next two determine
# each other, the rest have so few that an array holds their pairs.
VALUES = (EVERY, 1 << 12, 1 << 12, 1 << 7, 1 << 5, 1 << 2, SPAN, EVERY)


@dataclass(frozen=True)
class RollUps:
    """Nanoseconds; `sharing.model.unit_costs.Costs` has them under these names."""

    rolled: PerRow
    grouped: float
    read: float
    finish: float
    close: float


def measured_roll_ups(folder: Path) -> RollUps:
    """All of them, in a fifth of a second."""
    names = NAMES[:KEYS]
    texts = (asked("".join(pair), pair, "g") for pair in combinations(names, 2))
    pairs = resolved(texts)
    wanted = [relation_of(query) for query in pairs]
    trial, few = (_Stored(folder, pairs[0], union_of(wanted), rows) for rows in (ROWS, FEW))
    made = trial.rolling()
    each = [(trial.again(made, one), len(made.groups(one)) * columns_of(one)) for one in wanted]
    row, grouped = _row_and_group(each)
    closed, hardly = trial.closed(pairs), few.closed(pairs)
    column = max(LEAST_COLUMN, (closed[ROLL] - sum(spent for spent, _ in each)) / (ROWS * KEYS))
    finish = max(LEAST_COLUMN, (closed[FINISH] - hardly[FINISH]) / sum(columns for _, columns in each))
    read, close = (max(LEAST, hardly[part] / len(pairs)) for part in (ROLL, FINISH))
    return RollUps(PerRow(row, column), grouped, read, finish, close)


def _row_and_group(each: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """By the nanoseconds and the columns of groups of roll-ups: those that give few, and those that give many."""
    edge = np.mean([columns for _, columns in each])
    few, many = (np.mean([one for one in each if bool(one[1] > edge) == more], axis=0) for more in (False, True))
    grouped = max(LEAST_COLUMN, float((many[0] - few[0]) / (many[1] - few[1])))
    return max(LEAST, float(few[0] - grouped * few[1]) / ROWS), grouped


class _Stored:
    """Rows in a segment, and what is rolled up from them."""

    def __init__(self, folder: Path, query: Query, relation: Relation, rows: int) -> None:
        self._trial = Trial(folder, query, VALUES, relation)
        self._folder, self._read = folder, self._trial.stored(rows)

    def rolling(self) -> Rolling:
        relation, cut = self._trial.relation, Cut(0, 0, 1, 0, self._trial.slots)
        with TaskSegments(self._folder, self._read) as segments:
            pieces: list[Piece] = list(pane_pieces(StoredSource(relation), cut, segments))
            found = Rolling(relation, Merge(relation, pieces, Vocabulary()))
            found.lead(relation)  # reads and codes all attributes, while the files are open
            return found

    def again(self, made: Rolling, wanted: Relation) -> float:
        """ns of one that finds codes and the order of rows."""
        made.groups(wanted)
        return middle(lambda: timed(lambda: made.groups(wanted)))

    def closed(self, pairs: Sequence[Query]) -> dict[str, float]:
        """ns of each part of closing a window of these queries, whose results are written as those of a run are."""
        source, work = StoredSource(self._trial.relation), list[Counts]()
        reading = Reading(pairs[0].window, (source,), pairs[0].stream, "ts")
        wanting = [Wanting(query, Part(relation_of(query), (source,))) for query in pairs]
        cut = Cut(0, 0, 1, 0, self._trial.slots)
        sinks = {query.name: self._sink(query) for query in pairs}

        def run() -> int:
            with TaskSegments(self._folder, self._read) as segments:
                for one in merge_item(reading, wanting, cut, segments):
                    sinks[one.query].stage(one.table, 0, 0, "calibration")
                work.append(segments.meter.work()[source.relation.name])
            return 0

        middle(run)
        return {part: median(counts[part] for counts in work) for part in (ROLL, FINISH)}

    def _sink(self, query: Query) -> ParquetSink:
        folder = self._folder / "results" / query.name
        (folder / STAGED).mkdir(parents=True, exist_ok=True)
        return ParquetSink(query.name, str(folder), result_schema(query))
