"""The engine without Spark: tasks in worker processes of penstock's own, or one after the other in this one.

It reads sources of penstock's own alone. Driver, manifests, sinks, lease and account are those of any run; what Spark
would log (offsets and commits) stands in `decisions/` of the checkpoint (`engine.batches`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError, RunError, why
from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.batch.executor import R, share_told
from penstock.runtime.batch.fused import FusedReader, FusedTasks
from penstock.runtime.batch.job import Job
from penstock.runtime.batch.outcome import heard
from penstock.runtime.engine.base import PROCESS
from penstock.runtime.engine.batches import LoggedFeed, MicroBatches
from penstock.runtime.engine.inputs import Inputs
from penstock.runtime.engine.once import Once
from penstock.runtime.engine.places import Places
from penstock.runtime.engine.pool import AGAIN, Pool
from penstock.state.protocol import TaskReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOINS = ("penstock.runtime.merge.join.spread",)


@dataclass(frozen=True)
class ProcessExecutor:
    """Batches and merges are cut for `parallelism` tasks; without a pool they run in this process."""

    parallelism: int
    pool: Pool | None = None

    def run_tasks(self, given: FusedTasks) -> list[TaskReport]:
        return heard(self._told(len(given), given), TaskReport)

    def run_shares(self, count: int, run: Callable[[int], R], kind: type[R]) -> list[R]:
        return heard(self._told(count, partial(share_told, run)), kind)

    def _told(self, count: int, run: Callable[[int], str]) -> list[str]:
        return [run(number) for number in range(count)] if self.pool is None else self.pool.told(count, run)


class ProcessEngine:
    """`parallelism` tasks at the same time, by default one for each core; a single one needs no worker. `joining`:
    workers will join, and load what that takes before."""

    name = PROCESS
    session: SparkSession | None = None
    version: str | None = None
    spread = False

    def __init__(self, parallelism: int | None = None, joining: bool = False) -> None:
        count = max(1, parallelism or os.cpu_count() or 1)
        self._pool = Pool(count, JOINS if joining else ()) if count > 1 else None
        self._executor = ProcessExecutor(count, self._pool)

    @property
    def executor(self) -> ProcessExecutor:
        return self._executor

    def probe(self, places: Places) -> None:
        """Tasks run here, with the driver's files."""

    def processes(self) -> list[int]:
        return [os.getpid()] if self._pool is None else [os.getpid(), self._pool.zygote]

    def feed(self, job: Job, inputs: Inputs) -> LoggedFeed:
        inputs.check_needs(with_spark=False)
        return LoggedFeed(self._executor, Path(job.checkpoint), dict(job.sources), job.until, FusedReader(job))

    def start(self, job: Job, driver: BatchDriver[Any], inputs: Inputs) -> ProcessLoop:
        assert isinstance(driver.feed, LoggedFeed)
        return ProcessLoop(MicroBatches(driver, driver.feed, job.until))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()


class ProcessLoop:
    """Micro-batches in a thread."""

    def __init__(self, batches: MicroBatches) -> None:
        self._batches = batches
        self._once = Once(batches.run)

    def wait(self, timeout: float | None = None) -> bool:
        try:
            return self._once.awaitTermination(timeout)
        except PenstockError:
            raise
        except OSError as error:
            place = f" ({error.filename})" if error.filename else ""
            raise RunError(f"the run stopped: {why(error)}{place}", AGAIN) from error
        except Exception as error:  # a bug: one sentence for users, the trace for whoever looks for it
            raise RunError(f"the run stopped: {type(error).__name__}: {error}", AGAIN) from error

    def waiting(self) -> bool:
        return self._batches.waiting

    def stop(self) -> None:
        self._batches.stop()
        self._once.stop()
