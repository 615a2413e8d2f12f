"""Measure what roll-ups and results cost on this machine, and what both take of each item, however few rows it has.

The engine's own items are closed here over stored rows of several attributes, some of many values and some of few, with
a query for each pair of them: from the files to the files of results. What a merge task counts of that is what prices
are of, so they follow from a few of such items:

    each query again, which finds codes and order    a row, and a column of a group that comes out
    many rows, and fewer                             an attribute of a row that is coded; a column of a result
    fewer rows, and one query in place of many       what each query takes, and each attribute, however few the rows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    LEAST,
    LEAST_COLUMN,
    NAMES,
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
ROWS, FEWER = 1 << 17, 1 << 13
KEYS = NAMES[1:7]
# How many values they have, low ones more frequently: some pairs have nearly as many groups as there are rows, others
# fewer, down to a few that an array holds.
VALUES, SKEW = (EVERY, 1 << 17, 1 << 15, 1 << 12, 1 << 9, 1 << 6, 1 << 3, EVERY), 3


@dataclass(frozen=True)
class RollUps:
    """Nanoseconds; `sharing.model.unit_costs.Costs` has them under these names."""

    rolled: PerRow
    grouped: float
    read: float
    coding: float
    finish: float
    close: float


def measured_roll_ups(folder: Path) -> RollUps:
    """All of them, in a third of a second."""
    pairs = resolved(asked("".join(pair), pair, "a") for pair in combinations(KEYS, 2))
    widest = resolved([asked("widest", KEYS[:-1], "a")])
    union = union_of([relation_of(query) for query in pairs])
    many, fewer = (_Stored(folder, pairs[0], union, rows) for rows in (ROWS, FEWER))
    row, grouped = row_and_group(many.again(pairs), fewer.again(pairs))
    closed, hardly = many.closed(pairs), fewer.closed(pairs)
    column, read, coding = of_items((closed, hardly, fewer.closed(widest)), row, grouped)
    finish = max(LEAST_COLUMN, (closed[FINISH] - hardly[FINISH]) / (closed["cells"] - hardly["cells"]))
    close = max(LEAST, (hardly[FINISH] - finish * hardly["cells"]) / hardly["closed"])
    return RollUps(PerRow(row, column), grouped, read, coding, finish, close)


@dataclass(frozen=True)
class Again:
    """Nanoseconds of a roll-up that finds codes and the order of rows, its rows, and columns of its groups."""

    spent: float
    rows: int
    columns: int


def row_and_group(many: Sequence[Again], fewer: Sequence[Again]) -> tuple[float, float]:
    """What a row costs, and a column of a group: by least squares, of what the same roll-ups take more of more rows."""
    more = [(a.rows - b.rows, a.columns - b.columns, a.spent - b.spent) for a, b in zip(many, fewer, strict=True)]
    rows, columns, spent = np.array(more, np.float64).T
    (row, grouped), *_ = np.linalg.lstsq(np.stack([rows, columns], axis=1), spent)
    return max(LEAST, float(row)), max(LEAST_COLUMN, float(grouped))


def of_items(items: Sequence[Mapping[str, float]], row: float, grouped: float) -> tuple[float, float, float]:
    """What an attribute of a row costs that is coded; what each roll-up takes, and each attribute, however few the
    rows: by what three items take beside their rows and groups."""
    counts = [[one["coded"], one["rollups"], one["codings"]] for one in items]
    spent = [one[ROLL] - row * one["rolled"] - grouped * one["filled"] for one in items]
    column, read, coding = np.linalg.solve(np.array(counts, np.float64), np.array(spent, np.float64))
    return max(LEAST_COLUMN, float(column)), max(LEAST, float(read)), max(LEAST, float(coding))


class _Stored:
    """Rows in a segment, and what is rolled up from them."""

    def __init__(self, folder: Path, query: Query, relation: Relation, rows: int) -> None:
        self._trial = Trial(folder, query, VALUES, relation, SKEW)
        self._folder, self._read = folder, self._trial.stored(rows)

    def rolling(self) -> Rolling:
        relation, cut = self._trial.relation, Cut(0, 0, 1, 0, self._trial.slots)
        with TaskSegments(self._folder, self._read) as segments:
            pieces: list[Piece] = list(pane_pieces(StoredSource(relation), cut, segments))
            found = Rolling(relation, Merge(relation, pieces, Vocabulary()))
            found.lead(relation)  # reads and codes all attributes, while the files are open
            return found

    def again(self, queries: Sequence[Query]) -> list[Again]:
        """Roll-ups that find codes and the order of rows."""
        made, found = self.rolling(), list[Again]()
        for wanted in map(relation_of, queries):
            groups = made.groups(wanted)
            spent = middle(lambda wanted=wanted: timed(lambda: made.groups(wanted)))  # type: ignore[misc]
            found.append(Again(spent, made.rows, len(groups) * columns_of(wanted)))
        return found

    def closed(self, queries: Sequence[Query]) -> dict[str, float]:
        """What closing a window of these queries counts, whose results are written as those of a run are."""
        source, work = StoredSource(self._trial.relation), list[Counts]()
        reading = Reading(queries[0].window, (source,), queries[0].stream, "ts")
        wanting = [Wanting(query, Part(relation_of(query), (source,))) for query in queries]
        cut = Cut(0, 0, 1, 0, self._trial.slots)
        sinks = {query.name: self._sink(query) for query in queries}

        def run() -> int:
            with TaskSegments(self._folder, self._read) as segments:
                for one in merge_item(reading, wanting, cut, segments):
                    sinks[one.query].stage(one.table, 0, 0, "calibration")
                work.append(segments.meter.work()[source.relation.name])
            return 0

        middle(run)
        return {name: float(median(counts[name] for counts in work)) for name in work[0]}

    def _sink(self, query: Query) -> ParquetSink:
        folder = self._folder / "results" / query.name
        (folder / STAGED).mkdir(parents=True, exist_ok=True)
        return ParquetSink(query.name, str(folder), result_schema(query))
