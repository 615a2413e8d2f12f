"""A run as its user sees it: waiting, stopping, progress, results, summary, and queries that come and go.

`runtime.run.start.start` makes one; behind it stand the driver of batches and the loop of the engine that calls it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from logging import ERROR
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, PenstockError
from penstock.logs import tell
from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.engine.base import Engine, Loop
from penstock.runtime.run import active
from penstock.runtime.run.changes import Amending
from penstock.runtime.run.history import History
from penstock.runtime.run.lateness import shown_arrivals
from penstock.runtime.run.results import as_pandas, by_window
from penstock.runtime.run.shown import Summary, run_html
from penstock.runtime.run.summary import RunTimes, shown_volume, shown_watermark, summarise, window_account
from penstock.runtime.run.told import tell_end
from penstock.sharing.plan import SharedPlan
from penstock.sinks.base import Sink
from penstock.state.rings import CAPACITY

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa
    from pyspark.sql import DataFrame


class Run:
    """A running app: `await_end`, `stop`, `progress`, `results` (`arrow`, `pandas`), `window_account`, `summary`,
    `add_query`, `drop_query`."""

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
        self._failed = False

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
        except PenstockError as error:
            if self._driver.failure is None:  # not of a batch
                tell("failure", f"the run failed: {error.fact}", ERROR, fact=error.fact, hint=error.hint)
            self._failed = True
            self._close()
            raise
        if ended:
            self._close()
        return ended

    def waiting(self) -> bool:
        """Whether a run that goes on has done all that has arrived, and waits for more."""
        return self._ended_at is None and self._loop.waiting()

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
            tell_end(self.state, self._driver.manifest)
            active.forget(self)

    def progress(self) -> dict[str, Any]:
        """Rows so far, rows in all, windows closed, watermark, bytes written, read and kept; of live streams the
        records that wait."""
        manifest = self._driver.manifest
        return {
            "batch": manifest.batch,
            "rows": sum(manifest.account.of(name).input for name in manifest.offset.streams),
            "total": self._driver.feed.total(),
            "windows": manifest.windows,
            "watermark": shown_watermark(manifest.watermarks),
            "bytes": shown_volume(manifest.volume, manifest.kept_bytes),
            "live": shown_arrivals(self._history.reports[-1] if self._history.reports else None),
            "active": self._ended_at is None,
        }

    def results(self, name: str) -> DataFrame:
        """A query's results so far as a Spark DataFrame."""
        sink, session = self._sink(name), self._engine.session
        if session is None:
            raise ConfigError(
                f"the results of query '{name}' as a DataFrame need Spark, and this run has none",
                "take run.arrow or run.pandas, or run the app on a Spark master",
            )
        return sink.results(session)

    def arrow(self, name: str) -> pa.Table:
        """A query's results so far as an Arrow table, windows in order; it needs no Spark."""
        return by_window(self._sink(name).table())

    def pandas(self, name: str) -> pandas.DataFrame:
        """A query's results so far as a pandas DataFrame, windows in order; it needs no Spark. Integers and booleans
        with NULLs among them come in pandas' types that know NULL: none is rounded."""
        return as_pandas(self.arrow(name))

    def window_account(self, name: str, most: int = CAPACITY) -> list[dict[str, int | bool]]:
        """The newest closed windows of a query, newest last: `start` and `end` as in its results (microseconds), `rows`
        emitted, input records `exact` and `triaged`. Some 65,536 windows are kept."""
        self._sink(name)
        return window_account(self._driver.held.path, self._driver.manifest, name, most)

    def _sink(self, name: str) -> Sink:
        sinks = self._driver.sinks
        if name not in sinks:
            raise ConfigError(f"there is no query '{name}'", f"queries are {', '.join(sorted(sinks))}")
        return sinks[name]

    def summary(self) -> Summary:
        """What `run --json` prints."""
        driver, ended_at = self._driver, self._ended_at or time.monotonic()
        return Summary(
            summarise(
                driver.held.path,
                driver.held.version,
                driver.manifest,
                driver.sinks,
                self._history,
                RunTimes(self._started_at, ended_at, self._seconds),
                self._engine.version,
            )
        )

    @property
    def state(self) -> str:
        """`running`, `ended` (all that the sources have is done), `stopped` or `failed`."""
        if self._failed or self._driver.failure is not None:
            return "failed"
        if self._ended_at is None:
            return "running"
        return "ended" if self._driver.manifest.ended else "stopped"

    def __repr__(self) -> str:
        return f"<penstock.Run: {self.state}, checkpoint {self.checkpoint}>"

    def _repr_html_(self) -> str:
        return run_html(self.state, self.progress(), self.summary())
