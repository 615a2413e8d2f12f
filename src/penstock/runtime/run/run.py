"""A run as its user sees it: waiting, stopping, progress, results, summary, and queries that come and go.

`runtime.run.start.start` makes one; behind it stand the driver of batches and Spark's streaming query.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import ConfigError, PenstockError, RunError
from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.batch.job import END
from penstock.runtime.run.changes import Amending
from penstock.runtime.run.history import History
from penstock.runtime.run.summary import Clock, shown_volume, shown_watermark, summarise, window_account
from penstock.sharing.plan import SharedPlan
from penstock.sinks.base import Sink
from penstock.state.checked import RESTORE
from penstock.state.windows import CAPACITY


class Run:
    """A running app: `await_end`, `stop`, `progress`, `results`, `window_account`, `summary`, `add_query`,
    `drop_query`."""

    def __init__(
        self,
        spark: SparkSession,
        driver: BatchDriver[DataFrame],
        query: Any,
        amending: Amending,
        history: History,
        seconds: Mapping[str, float],
    ) -> None:
        self._spark, self._driver, self._query = spark, driver, query
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

    def await_end(self, timeout: int | None = None) -> bool:
        """Wait until the source has ended; False if `timeout` seconds passed first. Raises what went wrong."""
        if self._ended_at is not None:
            return True
        try:
            ended = True if timeout is None else bool(self._query.awaitTermination(timeout))
            if timeout is None:
                self._query.awaitTermination()
            if ended:
                self._end_stream()
        except (PySparkException, PenstockError) as error:
            self._close()
            raise self._driver.failure or _failure(error) from None
        except Exception as error:  # py4j's network errors when the JVM is gone have no common root
            self._close()
            raise RunError(
                f"Spark ended unexpectedly: {type(error).__name__}", "run again: it goes on from the checkpoint"
            ) from error
        if ended:
            self._close()
        return ended

    def _end_stream(self) -> None:
        """The end of a stream may be a batch that Spark knows nothing of."""
        driver = self._driver
        if self._amending.settings.until == END and not driver.manifest.ended and driver.feed.end_batch():
            driver(None, driver.manifest.batch + 1)

    def stop(self) -> None:
        """Stop between two batches; a later run on the checkpoint goes on from there."""
        before = self._driver.done
        deadline = time.monotonic() + 30
        # A stop inside foreachBatch trips over a bug of Spark's: wait for the end of the batch.
        while self._query.isActive and self._driver.done == before and time.monotonic() < deadline:
            if not self._query.status["isTriggerActive"]:
                break
            time.sleep(0.01)
        self._query.stop()
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
            self._driver.held.lease.release()

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
        return self._sink(name).results(self._spark)

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
            Clock(self._started_at, ended_at, self._seconds),
            self._spark.version,
        )


def _failure(error: PySparkException | PenstockError) -> PenstockError:
    """One sentence out of Spark's report."""
    if isinstance(error, PenstockError):
        return error
    text = str(error)
    ours = re.search(r"penstock\.errors\.\w+: (.+)(?:\n\s*hint: (.+))?", text)
    if ours is not None:  # raised in the source's process, and wrapped by Spark
        return RunError(ours[1].strip(), (ours[2] or "see penstock state --checkpoint").strip())
    damaged = re.search(r"Checksum error: file:(\S+)", text)
    if damaged is not None:
        return RunError(f"Spark's log {damaged[1]} is damaged", RESTORE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next(
        (line for line in reversed(lines) if "Error" in line or "Exception" in line), lines[0] if lines else text
    )
    return RunError(f"Spark stopped the run: {cause[:500]}", "run again: it goes on from the checkpoint")
