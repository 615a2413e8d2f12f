"""Measure what joins cost on this machine (`sharing.joins.cost.JoinCosts`): once, in less than a second.

Runs the engine's own tasks and joins over a few thousand random records, and takes the constants from how their times
differ. Kept beside the costs of tables (`runtime.profile.calibrate`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from math import isfinite
from pathlib import Path
from time import thread_time_ns

import numpy as np
import pyarrow as pa

from penstock.logical.query import Query, QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.relations.joining import side_relation
from penstock.relations.relation import wanted_of
from penstock.relations.sides import ALL_EARLY, SideTables
from penstock.relations.storage import StoredSource
from penstock.runtime.epoch import Epoch
from penstock.runtime.merge.items import Cut, Part
from penstock.runtime.merge.join import item
from penstock.runtime.merge.join.reading import JoinReading, JoinWanting, SideReading
from penstock.runtime.merge.windows import TaskSegments
from penstock.runtime.profile.calibrate import calibrated, place_of, store
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task import task as tasks
from penstock.sharing.joins.cost import JoinCosts
from penstock.sharing.model.unit_costs import Costs
from penstock.sharing.plan import SharedPlan, unshared_plan
from penstock.state.protocol import SegmentRef
from penstock.state.segments.write import SegmentWriter

RECORDS, FEWER = 32_768, 8_192
TIMES = 5  # that something is measured: what disturbs only adds
SLOTS = 16
ENTRY = 64.0  # bytes of a group in an exact table here
STREAM = "CREATE STREAM {0} (ts TIMESTAMP, k INT, g INT, x INT) FROM 'csv:{0}' WATERMARK ts DELAY '0 s';"
JOIN = (
    "CREATE QUERY j AS SELECT A.g, B.g AS h, {} FROM a A [RANGE '1 s'] JOIN b B [RANGE '1 s'] ON A.k = B.k "
    "GROUP BY A.g, B.g;"
)
COUNTED, FOLDED = "count(*) AS n", "count(*) AS n, sum(A.x) AS s, max(B.x) AS t, min(A.x) AS u"
LATE = SideTables(frozenset({"j:A", "j:B"}))
GROUPS = (64, 16)  # of both sides: more than there are keys, so that pairs of rows are met, not cells
LEAST_PART = 0.5  # of what a row takes together with its pair: its own
CELL, CELL_PAIR = 0.35, 0.25  # of an aggregate of a pair, more or less
REPEATED = 8  # records of a key, where there are many pairs
# Modules of what is measured; measured in another way, costs are others.
MEASURED = (
    *("kernels.tables.joining", "kernels.tables.living", "kernels.tables.merge", "runtime.merge.join.living.folding"),
    *("runtime.merge.join.item", "runtime.task.task", "runtime.planning.join_costs"),
)


@lru_cache(maxsize=1)
def calibrated_joins(fresh: bool = False) -> JoinCosts:
    """The unit costs of joins on this machine."""
    path = kept_at()
    known = None if fresh or path is None else _load(path)
    if known is None:
        known = measure(calibrated())
        if path is not None:
            store(path, asdict(known))
    return known


def kept_at() -> Path | None:
    """Where they are kept."""
    return place_of("joins", MEASURED)


def _load(path: Path) -> JoinCosts | None:
    try:
        found = json.loads(path.read_text())
        kept = JoinCosts(**{field.name: float(found[field.name]) for field in fields(JoinCosts)})
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return kept if all(isfinite(one) and one > 0 for one in asdict(kept).values()) else None


@dataclass(frozen=True)
class Trial:
    """A join of so many aggregates, in a folder of its own."""

    folder: Path
    app: QuerySet

    @property
    def query(self) -> Query:
        return self.app.query("j")

    def plan(self, stream: str, sides: SideTables) -> SharedPlan:
        return unshared_plan(self.app, stream, sides=sides)

    def segment(self, stream: str, sides: SideTables, records: pa.RecordBatch) -> tuple[SegmentRef, int]:
        """What a task writes of these records, and its nanoseconds."""
        number = len(list(self.folder.iterdir()))
        with SegmentWriter(self.folder / f"{number}.seg", SLOTS) as writer:
            task = tasks.Task(self.plan(stream, sides), TaskSettings(slots=SLOTS), Epoch(0), writer)
            began = thread_time_ns()
            task.take(records)
            task.end()
            spent = thread_time_ns() - began
            return writer.close(), spent

    def joined(self, records: int, keys: int, merged: bool) -> float:
        """Nanoseconds of a join of late records with so many keys; `merged`: of groups that are merged before."""
        both = [_records(records, keys, many, seed) for seed, many in enumerate(GROUPS)]
        written = [self.segment(stream, LATE, each)[0] for stream, each in zip("ab", both, strict=True)]
        reading = JoinReading(self.query.window, (self._side(0), self._side(1)))
        wanting = JoinWanting(self.query, Part(wanted_of(self.query).groups, ()))
        cut = Cut(1, 0, 1, 0, SLOTS, None, 1, 2 * records)
        way = item.combined_part if merged else item.joined_part

        def once() -> None:
            with TaskSegments(self.folder, written) as segments:
                way(reading, wanting, cut, segments)

        return _best(once)

    def _side(self, number: int) -> SideReading:
        join = self.query.join
        assert join is not None
        side = join.sides[number]
        (relation,) = self.plan(side.stream, LATE).relations
        wanted = side_relation(self.query, side, wanted_of(self.query), 0, LATE.of("j", side))
        return SideReading(side, wanted, (StoredSource(relation),))


def _best(run: Callable[[], object]) -> float:
    found = []
    for _ in range(TIMES):
        began = thread_time_ns()
        run()
        found.append(thread_time_ns() - began)
    return float(min(found))


def _records(count: int, keys: int, groups: int, seed: int) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 1_000_000, count))
    columns = {
        "ts": pa.array(times, pa.timestamp("us")),
        "k": pa.array(rng.permutation(count) % keys, pa.int64()),
        "g": pa.array(rng.integers(0, groups, count), pa.int64()),
        "x": pa.array(rng.integers(0, 1000, count), pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def measure(units: Costs) -> JoinCosts:
    """All constants."""
    with tempfile.TemporaryDirectory(prefix="penstock-joins-") as folder:
        trials = [_trial(Path(folder) / name, text) for name, text in (("c", COUNTED), ("f", FOLDED))]
        row, pair, fold = _of_joins(trials, merged=False)
        merged, combined, folded = _of_joins(trials, merged=True)
        cells = {"cell": CELL * fold, "cell_pair": CELL_PAIR * fold}
        joins = {"row": row, "pair": pair, "fold": fold, "merge": merged, "combined": combined, "folded": folded}
        return JoinCosts(**_of_tasks(trials[1], units), **joins, **cells)


def _trial(folder: Path, aggregates: str) -> Trial:
    folder.mkdir()
    text = STREAM.format("a") + STREAM.format("b") + JOIN.format(aggregates)
    return Trial(folder, resolve_app(text, "calibration", lambda uri, options: ()))


def _of_tasks(trial: Trial, units: Costs) -> dict[str, float]:
    """What a record is appended for, and a row written: beside a task that has few groups."""

    def spent(sides: SideTables, keys: int) -> float:
        records = _records(RECORDS, keys, 1, 3)
        return min(trial.segment("a", sides, records)[1] for _ in range(TIMES)) / RECORDS

    few, many, late = spent(ALL_EARLY, 16), spent(ALL_EARLY, RECORDS), spent(LATE, RECORDS)
    small, large = units.insert_at(16 * ENTRY), units.insert_at(RECORDS * ENTRY)
    write = max(1.0, many - few - (large - small))
    append = max(0.5, late - (few - small) - write)
    return {"append": min(small, append), "write": write}  # it does less than a probe of a small table


def _of_joins(trials: Sequence[Trial], merged: bool) -> tuple[float, float, float]:
    """Of a row, a pair, and an aggregate of it: from joins of fewer records, of fewer pairs, of fewer aggregates."""
    slopes, low = [], 0.0
    for trial in trials:
        low, high = (trial.joined(RECORDS, keys, merged) for keys in (RECORDS, RECORDS // REPEATED))
        slopes.append(max(0.2, (high - low) / (RECORDS * (REPEATED - 1))))
    more = len(wanted_of(trials[1].query).groups.states) - len(wanted_of(trials[0].query).groups.states)
    fold = max(0.1, (slopes[1] - slopes[0]) / more)
    few = trials[1].joined(FEWER, FEWER, merged)
    each = max(1.0, (low - few) / (2 * (RECORDS - FEWER)))  # of a row with its half of a pair,
    row = max(LEAST_PART * each, each - slopes[1] / 2)  # which may cost less where there are few
    return row, max(0.1, slopes[0] - fold), fold
