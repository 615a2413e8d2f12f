"""A run as its user sees it: waiting, stopping, progress, results, summary, and queries that come and go.

`runtime.run.start.start` makes one; behind it stand the driver of batches and the loop of the engine that calls it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, PenstockError
from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.engine.base import Engine, Loop
from penstock.runtime.run import active
from penstock.runtime.run.changes import Amending
from penstock.runtime.run.history import History
from penstock.runtime.run.summary import RunTimes, shown_volume, shown_watermark, summarise, window_account
from penstock.sharing.plan import SharedPlan
from penstock.sinks.base import Sink
from penstock.state.windows import CAPACITY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Run:
    """A running app: `await_end`, `stop`, `progress`, `results`, `window_account`, `summary`, `add_query`,
    `drop_query`."""

    def __init__(
        self,
        engine: Engine,
        driver: BatchDriver[Any],
        loop: Loop,
        amending: Amending,
        history: History,
        seconds: Mapping[str, float],
    ) -> None:
        self._engine, self._driver, self._loop = engine, driver, loop
        self._amending, self._history = amending, history
        self._started_at, self._seconds = time.monotonic(), seconds
        self._ended_at: float | None = None

    @property
    def checkpoint(self) -> str:
        return str(self._driver.held.path)

    @property
    def plans(self) -> Mapping[str, SharedPlan]:
        """The plan in use, for every stream and for every query whose results are read."""
        return self._driver.held.version.plans

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until the source has ended; False if `timeout` seconds passed first. Raises what went wrong."""
        if self._ended_at is not None:
            return True
        try:
            ended = self._loop.wait(timeout)
        except PenstockError:
            self._close()
            raise
        if ended:
            self._close()
        return ended

    def stop(self) -> None:
        """Stop between two batches; a later run on the checkpoint goes on from there."""
        self._loop.stop()
        self._close()

    def add_query(self, name: str, select: str, sink: Any = None) -> None:
        """Add a query from the next batch on: its first window starts after the greatest time seen."""
        self._amending.add(name, select, sink)

    def drop_query(self, name: str) -> None:
        """Drop a query from the next batch on; its open windows are discarded."""
        self._amending.drop(name)

    def _close(self) -> None:
        if self._ended_at is None:
            self._ended_at = time.monotonic()
            if self._driver.failure is None:
                self._driver.collect_garbage()
            self._engine.close()  # whoever could still write is gone before the lease is
            self._driver.held.lease.release()
            active.forget(self)

    def progress(self) -> dict[str, Any]:
        """Rows so far, rows in all, windows closed, watermark, bytes written, read and kept."""
        manifest = self._driver.manifest
        return {
            "batch": manifest.batch,
            "rows": sum(manifest.account.of(name).input for name in manifest.offset.streams),
            "total": self._driver.feed.total(),
            "windows": manifest.windows,
            "watermark": shown_watermark(manifest.watermarks),
            "bytes": shown_volume(manifest.volume, manifest.kept_bytes),
            "active": self._ended_at is None,
        }

    def results(self, name: str) -> DataFrame:
        """A query's results so far as a Spark DataFrame."""
        sink, session = self._sink(name), self._engine.session
        if session is None:
            raise ConfigError(
                f"the results of query '{name}' as a DataFrame need Spark, and this run has none",
                "read the files of its sink, or run the app on a Spark master",
            )
        return sink.results(session)

    def window_account(self, name: str, most: int = CAPACITY) -> list[dict[str, int]]:
        """The newest closed windows of a query, newest last: `start` and `end` as in its results (microseconds), `rows`
        emitted, input records `exact` and `triaged`. Some 65,536 windows are kept."""
        self._sink(name)
        return window_account(self._driver.held.path, self._driver.manifest, name, most)

    def _sink(self, name: str) -> Sink:
        sinks = self._driver.sinks
        if name not in sinks:
            raise ConfigError(f"there is no query '{name}'", f"queries are {', '.join(sorted(sinks))}")
        return sinks[name]

    def summary(self) -> dict[str, Any]:
        """What `run --json` prints."""
        driver, ended_at = self._driver, self._ended_at or time.monotonic()
        return summarise(
            driver.held.path,
            driver.held.version,
            driver.manifest,
            driver.sinks,
            self._history,
            RunTimes(self._started_at, ended_at, self._seconds),
            self._engine.version,
        )
