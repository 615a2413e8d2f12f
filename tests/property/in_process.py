"""The engine without Spark: the fused source, the driver and their tasks, one after the other in this process.

All but Spark's scheduling and its logs is the engine's own: offsets, versions, manifests, accounts, merge jobs,
compaction, garbage. A run of a dozen batches takes a tenth of a second, so that many more cases can be tried.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.logical.query import Query, QuerySet
from penstock.runtime.batch import close as hfta
from penstock.runtime.batch import compaction
from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.batch.feed import Task, parsed
from penstock.runtime.batch.fused import FusedReader
from penstock.runtime.batch.job import Job
from penstock.runtime.batch.offsets import Offset
from penstock.runtime.batch.replan import Planner
from penstock.runtime.batch.spark_job import _reported
from penstock.runtime.run.summary import summarise, window_account
from penstock.runtime.settings import TaskSettings
from penstock.sharing.options import NONE, Planning
from penstock.sharing.plan import SharedPlan, unshared_plans
from penstock.sinks.base import Owner
from penstock.sinks.parquet import ParquetSink
from penstock.sinks.schema import result_schema
from penstock.sources.base import OF_FILES, Abilities, Source
from penstock.state import lease as leases
from penstock.state import manifest as manifests
from penstock.state import versions
from penstock.state.garbage import SEGMENTS
from penstock.state.manifest import Manifest, first_manifest
from penstock.state.versions import Version
from penstock.state.windows import CAPACITY
from penstock.testing.apps.generators import Settings
from support.plans import random_plans

OWNER = "tests"


def bearable(settings: Settings, rows: int) -> Settings:
    """The same, but memory for a handful of groups only where there are not many: passes without end say nothing."""
    return replace(settings, task_memory=max(settings.task_memory, 40 * rows))


def run_here(spark: None, shares: int, run: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    """A Spark job without Spark; what a task returns must survive JSON."""
    reports = [json.loads(json.dumps(_reported(run, number))) for number in range(shares)]
    for report in reports:
        assert "error" not in report, report
    return reports


@dataclass
class HandFeed:
    """What was decided, and the references of tasks that ran, as the loop below has them."""

    commits: Path
    offset: Offset = field(default_factory=dict)
    references: list[str] = field(default_factory=list)

    def decision(self, batch: int, before: Manifest) -> Offset:
        assert self.offset["n"] == batch + 1
        return self.offset

    def tasks(self, given: None, offset: Offset) -> list[Task]:
        return parsed(self.references)

    def finished(self, batch: int) -> None:
        """As Spark's log of commits has it."""
        (self.commits / str(batch)).touch()

    def place(self, stream: str, row: int) -> str:
        return f"record {row + 1}"

    def abilities(self, stream: str) -> Abilities:
        return OF_FILES

    def total(self) -> int | None:
        return None


class Engine:
    """One app on one checkpoint; `step` runs a micro-batch. Without a planner of the engine's, plans are random and
    change at random."""

    def __init__(
        self,
        folder: Path,
        app: QuerySet,
        sources: Mapping[str, Source],
        settings: Settings,
        patch: pytest.MonkeyPatch,
        planner: Planner | None = None,
    ) -> None:
        patch.setattr(hfta, "run_job", run_here)
        patch.setattr(compaction, "run_job", run_here)
        self.checkpoint, self.output = folder / "checkpoint", folder / "out"
        for name in (SEGMENTS, manifests.FOLDER, versions.FOLDER, "spark/commits"):
            (self.checkpoint / name).mkdir(parents=True)
        task = TaskSettings(settings.chunk_rows, settings.table_rows, settings.task_memory, settings.slots)
        self.planner = planner
        sampling = planner is not None and planner.sampling
        job = Job(
            sources, task, str(self.checkpoint), settings.batch_rows, settings.parallelism, sampling=sampling
        )  # fmt: skip
        if planner is not None:
            planner.look(app, sources, settings.batch_rows, settings.parallelism)
        self.owner = Owner(OWNER, str(self.checkpoint))
        sinks = {query.name: self.sink(query) for query in app.queries if not query.hidden}
        self.rng = random.Random(settings.memory)
        places = {name: sink.place() for name, sink in sinks.items()}
        versions.store(self.checkpoint, Version(0, app, self._plans(app), places))
        self.reader, self.feed = FusedReader(job), HandFeed(self.checkpoint / "spark" / "commits")
        lease = leases.acquire(self.checkpoint, [])
        spark: Any = None
        self.driver = BatchDriver(
            spark, job, self.feed, self.owner, sinks, lease, first_manifest(), planner or Planner(Planning(NONE))
        )
        self.offset, self.batch = self.reader.initialOffset(), 0

    def _plans(self, app: QuerySet) -> dict[str, SharedPlan]:
        return random_plans(unshared_plans(app), self.rng) if self.planner is None else self.planner.plans(app)

    def replan(self) -> None:
        """Other tables from the next batch on."""
        last = self.driver.version
        self.driver.amend(replace(last, number=last.number + 1, plans=self._plans(last.app)))

    def sink(self, query: Query) -> ParquetSink:
        made = ParquetSink(query.name, str(self.output / query.name), result_schema(query))
        made.prepare(self.owner, False)
        return made

    def step(self) -> bool:
        """One micro-batch, sometimes with other tables than the last; False when there is none left."""
        if self.planner is None and self.rng.random() < 0.3:
            self.replan()
        end = json.loads(json.dumps(self.reader.latestOffset(self.offset, None)))
        if end == self.offset:
            return False
        self.feed.offset = end
        self.feed.references = list(self._references(self.offset, end))
        self.again()
        return True

    def again(self) -> None:
        """The micro-batch that was decided and read last, from the merges on."""
        self.driver(None, self.batch)
        self.offset, self.batch = self.feed.offset, self.batch + 1

    def _references(self, start: Offset, end: Offset) -> Iterator[str]:
        for split in self.reader.partitions(start, end):
            for batch in self.reader.read(split):
                yield from batch.column(0).to_pylist()

    def amend(self, app: QuerySet) -> None:
        """Go on with another app from the next batch on."""
        last = self.driver.version
        for query in app.queries:
            if not query.hidden and query.name not in self.driver.sinks:
                self.driver.sinks[query.name] = self.sink(query)
        dropped = {q.name for q in last.app.queries} - {q.name for q in app.queries}
        places = {name: sink.place() for name, sink in self.driver.sinks.items()}
        self.driver.amend(Version(last.number + 1, app, self._plans(app), places, last.retired | dropped))

    def finish(self) -> None:
        while self.step():
            pass
        self.driver.collect_garbage()
        self.driver.lease.release()

    def summary(self) -> dict[str, Any]:
        return summarise(self.driver, 0.0, 0.0, {}, "none")

    def window_account(self, query: str) -> list[dict[str, int]]:
        """All closed windows of a query (as long as the ring holds them)."""
        return window_account(self.driver, query, CAPACITY)

    def rows(self, query: str) -> pa.Table | None:
        """All rows that a plain glob of the query's folder sees; None where there is no file."""
        return read_output(self.output / query)


def read_output(folder: Path) -> pa.Table | None:
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return pa.concat_tables(tables) if tables else None
