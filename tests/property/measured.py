"""What plans really cost, counted and not timed: the engine without Spark over generated streams.

Probes, inserts and entries that are passed on are counted by the tasks and priced by fixed unit costs
(`sharing.model.unit_costs.USUAL`), as the planner prices what it expects: a figure that is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from in_process import Engine

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.runtime.planning import replan as planners
from penstock.runtime.planning.replan import Planner
from penstock.runtime.work import TABLE
from penstock.sharing.model.kinds.direct import DIRECT
from penstock.sharing.model.kinds.registry import kind_named
from penstock.sharing.model.unit_costs import USUAL
from penstock.sharing.options import OFF, Planning
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import fields
from penstock.sources.registry import open_source
from penstock.state import versions
from penstock.testing.apps.generators import Settings

Array = np.ndarray
Work = Mapping[str, Mapping[str, int]]
STEP = 1_000  # µs between two tuples
EXTRA = USUAL.fold - USUAL.word  # ns of a probe or insert of any table: one sum, a key of one word and not of two
ROW = 40  # bytes of a leaf's row and its index


def settings(batch_rows: int, parallelism: int = 2) -> Settings:
    return Settings(batch_rows, parallelism, 0, 112 << 20, 32_768, 4_096, 32)


def write(path: Path, columns: Mapping[str, Array]) -> None:
    """A stream of these columns, one tuple a millisecond, with a value `v` to sum up."""
    n = len(next(iter(columns.values())))
    times = pa.array(np.arange(n) * STEP, pa.timestamp("us"))
    value = np.random.default_rng(n).integers(0, 100, n)
    pq.write_table(pa.table({"ts": times, **columns, "v": value}), path, row_group_size=15_000)


def app_text(path: Path, keys: list[str], window_rows: int) -> str:
    """A query for each set of one-letter columns, of windows that hold so many tuples."""
    seconds = f"{window_rows * STEP // 1000} milliseconds"
    queries = [
        f"CREATE QUERY q_{letters} AS SELECT {', '.join(letters)}, count(*) AS n, sum(v) AS t "
        f"FROM s [RANGE '{seconds}' SLIDE '{seconds}'] GROUP BY {', '.join(letters)};"
        for letters in keys
    ]
    return "\n".join([f"CREATE STREAM s FROM 'parquet:{path}' WATERMARK ts DELAY '0 seconds';", *queries])


def resolved(text: str) -> tuple[QuerySet, dict[str, Any]]:
    app = resolve_app(text, "measured.sql", lambda uri, options: fields(open_source(uri, options).schema()))
    return app, {stream.name: open_source(stream.source, dict(stream.options)) for stream in app.streams}


class Fixed(Planner):
    """Plans that are given and stay."""

    def __init__(self, plans: dict[str, SharedPlan]) -> None:
        super().__init__(Planning(replan=OFF))
        self.given = plans

    def look(self, *about: Any) -> None:
        """There is nothing to find out."""

    def plans(self, app: QuerySet, since: Any = None) -> dict[str, SharedPlan]:
        return self.given


@dataclass
class Batch:
    """What a batch did, with which version of the app."""

    version: int
    rows: int
    tasks: list[Work]
    plan: SharedPlan

    @property
    def cost(self) -> float:
        return sum(priced(self.plan, work) for work in self.tasks)

    @property
    def operations(self) -> int:
        return sum(counts["probes"] for work in self.tasks for counts in work.values())


@dataclass
class Measured:
    """A run to the end."""

    engine: Engine
    batches: list[Batch] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """Nanoseconds a tuple."""
        return cost_of(self.batches)


def cost_of(batches: list[Batch]) -> float:
    return sum(batch.cost for batch in batches) / sum(batch.rows for batch in batches)


def run(
    folder: Path, text: str, chosen: Settings, planner: Planner, patch: pytest.MonkeyPatch, stream: str = "s"
) -> Measured:
    patch.setattr(planners, "calibrated", lambda: USUAL)
    folder.mkdir()
    app, sources = resolved(text)
    engine = Engine(folder, app, sources, chosen, planner)
    done = Measured(engine)
    while engine.step():
        tasks = engine.executor.reports
        number = engine.offset.plan
        rows = sum(task.rows for task in tasks)
        plan = versions.load(engine.checkpoint, number).plans[stream]
        if rows:
            done.batches.append(Batch(number, rows, [task.work for task in tasks], plan))
    engine.finish()
    return done


def priced(plan: SharedPlan, work: Work) -> float:
    """Nanoseconds of a task by what it counted, of queries that keep one sum each and keys of one word, as
    `sharing.model.engine_problem.EngineProblem` has it."""
    relations = {TABLE + each.name: each for each in plan.basis.relations} if plan.basis else {}
    names = {TABLE + table.name for table in plan.tables}
    memory = sum(each.buckets * each.entry for name, each in relations.items() if name in names)
    total = 0.0
    for name, counts in work.items():
        if name.startswith(TABLE):
            kind = kind_named(relations[name].kind) if name in relations else DIRECT
            total += counts["probes"] * (kind.probe(USUAL, memory) + EXTRA)
            total += (counts["evictions"] + counts["flushed"]) * USUAL.passing
        else:
            total += counts["probes"] * (USUAL.insert_at(counts["groups"] * ROW) + EXTRA)
    return total


def uniform(rng: np.random.Generator, n: int, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Every column at random, by itself."""
    return {name: rng.integers(0, size, n) for name, size in sizes.items()}


def zipf(rng: np.random.Generator, n: int, sizes: Mapping[str, int], skew: float = 1.0) -> dict[str, Array]:
    """Every column skewed, by itself."""
    found = {}
    for name, size in sizes.items():
        weights = 1.0 / np.arange(1, size + 1) ** skew
        found[name] = rng.choice(size, n, p=weights / weights.sum())
    return found


def clustered(rng: np.random.Generator, n: int, sizes: Mapping[str, int], flows: int, length: int) -> dict[str, Array]:
    """So many flows with fixed values in all columns; each time one comes it has `length` tuples, two or three flows
    at a time."""
    sequence = np.repeat(rng.integers(0, flows, n // length + 1), length)[:n]
    sequence = sequence[np.argsort(np.arange(n) + rng.integers(0, 2 * length, n), kind="stable")]
    return {name: rng.integers(0, size, flows)[sequence] for name, size in sizes.items()}


def joined(*parts: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
