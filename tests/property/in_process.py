"""Runs without Spark (`runtime.engine`), step by step, their tasks one after the other in this process.

All but the choice of plans and what happens meanwhile is the product's own. A run of a dozen batches takes a tenth of a
second, so that many more cases can be tried.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.logical.query import Query, QuerySet, side_name
from penstock.relations.sides import SideTables
from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.batch.executor import R
from penstock.runtime.batch.fused import FusedReader, FusedTasks
from penstock.runtime.batch.held import Held
from penstock.runtime.batch.job import Job
from penstock.runtime.batch.offsets import decision_path, read_decision
from penstock.runtime.engine.batches import LoggedFeed, MicroBatches
from penstock.runtime.engine.process import ProcessExecutor
from penstock.runtime.planning.planners import Replanning
from penstock.runtime.planning.replan import Planner
from penstock.runtime.run.history import History
from penstock.runtime.run.summary import RunTimes, summarise, window_account
from penstock.runtime.settings import TaskSettings
from penstock.sharing.joins.plans import joins_of
from penstock.sharing.options import NONE, OFF, Planning
from penstock.sharing.plan import SharedPlan, unshared_plans
from penstock.sinks.base import Owner
from penstock.sinks.parquet import ParquetSink
from penstock.sinks.schema import result_schema
from penstock.sources.base import Source
from penstock.sources.live.preparing import prepared
from penstock.state import lease as leases
from penstock.state import manifest as manifests
from penstock.state import versions
from penstock.state.garbage import SEGMENTS
from penstock.state.manifest import first_manifest
from penstock.state.protocol import Offset, TaskReport
from penstock.state.rings import CAPACITY
from penstock.testing.apps.generators import Settings
from penstock.triage.plan import Mode
from support.alone import alone
from support.appended import appended
from support.in_unions import in_unions
from support.plans import random_plans

OWNER = "tests"


def bearable(settings: Settings, rows: int) -> Settings:
    """The same, but memory for a handful of groups only where there are not many: passes without end say nothing."""
    return replace(settings, task_memory=max(settings.task_memory, 40 * rows))


def undisturbed() -> None:
    """Nothing happens meanwhile."""


@dataclass
class Watched:
    """The executor of this process, with what its tasks told last; `meanwhile` happens between tasks and merges, and
    tasks are tried `attempts` times."""

    executor: ProcessExecutor
    reports: list[TaskReport] = field(default_factory=list)
    meanwhile: Callable[[], object] = undisturbed
    attempts: int = 1

    @property
    def parallelism(self) -> int:
        return self.executor.parallelism

    def run_tasks(self, given: FusedTasks) -> list[TaskReport]:
        for _ in range(self.attempts):
            self.reports = self.executor.run_tasks(given)
        self.meanwhile()
        return self.reports

    def run_shares(self, count: int, run: Callable[[int], R], kind: type[R]) -> list[R]:
        return self.executor.run_shares(count, run, kind)


class Engine:
    """One app on one checkpoint; `step` runs a micro-batch. Without a planner of the engine's, plans are random and
    change at random."""

    def __init__(
        self,
        folder: Path,
        app: QuerySet,
        sources: Mapping[str, Source],
        settings: Settings,
        planner: Planner | None = None,
        overload: Mode = Mode.TRIAGE,
    ) -> None:
        self.checkpoint, self.output = folder / "checkpoint", folder / "out"
        for name in (SEGMENTS, manifests.FOLDER, versions.FOLDER):
            (self.checkpoint / name).mkdir(parents=True)
        task = TaskSettings(settings.chunk_rows, settings.table_rows, settings.task_memory, settings.slots)
        sources = prepared(app, sources)
        self.planner = planner
        sampling = planner is not None and planner.sampling
        job = Job(
            sources, task, str(self.checkpoint), settings.batch_rows, settings.parallelism, sampling=sampling,
            seed=OWNER, overload=overload,
        )  # fmt: skip
        if planner is not None:
            planner.look(app, sources, settings.batch_rows, settings.parallelism)
        owner, lease = Owner(OWNER, str(self.checkpoint)), leases.acquire(self.checkpoint, [])
        self.held, self.history = Held(self.checkpoint, owner, lease), History()
        sinks = {query.name: self.sink(query) for query in app.queries if not query.hidden}
        self.rng = random.Random(settings.memory)
        places = {name: sink.place() for name, sink in sinks.items()}
        versions.store(self.checkpoint, versions.first_version(app, partial(self._plans, app), places, Planning(NONE)))
        self.executor = Watched(ProcessExecutor(settings.parallelism))
        feed = LoggedFeed(self.executor, self.checkpoint, dict(sources), job.until, FusedReader(job))
        observers = [self.history, Replanning(planner or Planner(Planning(NONE, replan=OFF)), self.held)]
        self.driver = BatchDriver(self.executor, task, feed, self.held, sinks, first_manifest(), observers)
        self.batches = MicroBatches(self.driver, feed, job.until)

    @property
    def offset(self) -> Offset:
        """What was decided about the last batch that is done."""
        done = self.driver.manifest.batch
        return Offset() if done < 0 else read_decision(decision_path(self.checkpoint, done))

    @property
    def batch(self) -> int:
        """The next one."""
        return self.driver.manifest.batch + 1

    def _plans(self, app: QuerySet, since: Mapping[str, int]) -> Mapping[str, SharedPlan]:
        """Without a planner any tables, and what is stored as the engine's rule has it or each query by itself."""
        if self.planner is not None:
            return self.planner.plans(app, since)
        sides = self._sides(app)
        plans = unshared_plans(app, since=since, sides=sides)
        if self.rng.random() < 0.5:
            plans = {name: replace(plan, stored=alone(app, name, since, sides)) for name, plan in plans.items()}
        if self.rng.random() < 0.5:
            plans = {name: replace(plan, stored=in_unions(plan.stored, self.rng)) for name, plan in plans.items()}
        if self.rng.random() < 0.3:
            plans = {name: replace(plan, stored=appended(plan.stored, self.rng)) for name, plan in plans.items()}
        return random_plans(plans, self.rng)

    def _sides(self, app: QuerySet) -> SideTables:
        """Any sides of joins early, the others late."""
        names = [side_name(query.name, side.alias) for query, join in joins_of(app) for side in join.streams]
        return SideTables(frozenset(name for name in names if self.rng.random() < 0.5))

    def replan(self) -> None:
        """Other tables, and perhaps other stored relations, from the next batch on."""
        last = self.held.version
        newest = manifests.newest(self.checkpoint)
        self.held.amend(versions.next_version(last, last.app, partial(self._plans, last.app), newest))

    def sink(self, query: Query) -> ParquetSink:
        made = ParquetSink(query.name, str(self.output / query.name), result_schema(query))
        made.prepare(self.held.owner, False)
        return made

    def step(self, meanwhile: Callable[[], object] = undisturbed) -> bool:
        """One micro-batch, sometimes with other tables than the last; False when there is none left."""
        if self.planner is None and self.rng.random() < 0.3:
            self.replan()
        self.executor.meanwhile = meanwhile
        return self.again()

    def again(self) -> bool:
        """The micro-batch that failed, as it was decided."""
        return self.batches.step()

    def amend(self, app: QuerySet) -> None:
        """Go on with another app from the next batch on."""
        last = self.held.version
        for query in app.queries:
            if not query.hidden and query.name not in self.driver.sinks:
                self.driver.sinks[query.name] = self.sink(query)
        places = {name: sink.place() for name, sink in self.driver.sinks.items()}
        newest = manifests.newest(self.checkpoint)
        self.held.amend(versions.next_version(last, app, partial(self._plans, app), newest, places))

    def finish(self) -> None:
        while self.step():
            pass
        self.driver.collect_garbage()
        self.held.lease.release()

    def summary(self) -> dict[str, Any]:
        driver, version = self.driver, self.held.version
        clock = RunTimes(0.0, 0.0, {})
        return summarise(self.checkpoint, version, driver.manifest, driver.sinks, self.history, clock, "none")

    def window_account(self, query: str) -> list[dict[str, int]]:
        """All closed windows of a query (as long as the ring holds them)."""
        return window_account(self.checkpoint, self.driver.manifest, query, CAPACITY)

    def rows(self, query: str) -> pa.Table | None:
        """All rows that a plain glob of the query's folder sees; None where there is no file."""
        return read_output(self.output / query)


def read_output(folder: Path) -> pa.Table | None:
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return pa.concat_tables(tables) if tables else None
