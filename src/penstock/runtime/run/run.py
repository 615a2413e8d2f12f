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
from penstock.runtime.batch.driver import BatchDriver, watermark_of
from penstock.runtime.batch.frames import FrameFeed
from penstock.runtime.batch.job import END
from penstock.runtime.run.amend import added, dropped
from penstock.runtime.run.summary import summarise, window_account
from penstock.runtime.settings import RunSettings
from penstock.sharing.plan import SharedPlan
from penstock.sinks.base import Sink
from penstock.state.checked import RESTORE
from penstock.state.manifest import first_manifest, volume_since
from penstock.state.windows import CAPACITY


class Run:
    """A running app: `await_end`, `stop`, `progress`, `results`, `window_account`, `summary`, `add_query`,
    `drop_query`."""

    def __init__(
        self, spark: SparkSession, driver: BatchDriver, query: Any, settings: RunSettings, seconds: dict[str, float]
    ) -> None:
        self._spark, self._driver, self._query, self._settings = spark, driver, query, settings
        self._started_at, self._seconds = time.monotonic(), seconds
        self._ended_at: float | None = None

    @property
    def checkpoint(self) -> str:
        return self._driver.job.checkpoint

    @property
    def plans(self) -> Mapping[str, SharedPlan]:
        """The plan in use, for every stream and for every query whose results are read."""
        return self._driver.version.plans

    def await_end(self, timeout: int | None = None) -> bool:
        """Wait until the source has ended; False if `timeout` seconds passed first. Raises what went wrong."""
        if self._ended_at is not None:
            return True
        try:
            ended = True if timeout is None else bool(self._query.awaitTermination(timeout))
            if timeout is None:
                self._query.awaitTermination()
            if ended:
                self._end_frame()
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

    def _end_frame(self) -> None:
        """A streaming DataFrame that has ended closes its windows in a batch of its own."""
        driver = self._driver
        if isinstance(driver.feed, FrameFeed) and driver.job.until == END and not driver.manifest.ended:
            driver.feed.ending = True
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
        with self._driver.changing:
            self._driver.amend(added(self._driver, name, select, sink, self._settings))

    def drop_query(self, name: str) -> None:
        """Drop a query from the next batch on; its open windows are discarded."""
        with self._driver.changing:
            self._driver.amend(dropped(self._driver, name))

    def _close(self) -> None:
        if self._ended_at is None:
            self._ended_at = time.monotonic()
            if self._driver.failure is None:
                self._driver.collect_garbage()
            self._driver.lease.release()

    def progress(self) -> dict[str, Any]:
        """Rows so far, rows in all, windows closed, watermark, bytes written, read and kept."""
        manifest = self._driver.manifest
        declared = manifest.offset.get("streams", {})
        return {
            "batch": manifest.batch,
            "rows": sum(entry["input"] for name, entry in manifest.account["streams"].items() if name in declared),
            "total": self._driver.feed.total(),
            "windows": sum(r["windows"] for r in manifest.results.values()),
            "watermark": watermark_of(manifest),
            "bytes": volume_since(manifest, first_manifest()),
            "active": self._ended_at is None,
        }

    def results(self, name: str) -> DataFrame:
        """A query's results so far as a Spark DataFrame."""
        return self._sink(name).results(self._spark)

    def window_account(self, name: str, most: int = CAPACITY) -> list[dict[str, int]]:
        """The newest closed windows of a query, newest last: `start` and `end` as in its results (microseconds), `rows`
        emitted, input tuples `exact` and `triaged`. Some 65,536 windows are kept."""
        self._sink(name)
        return window_account(self._driver, name, most)

    def _sink(self, name: str) -> Sink:
        sinks = self._driver.sinks
        if name not in sinks:
            raise ConfigError(f"there is no query '{name}'", f"queries are {', '.join(sorted(sinks))}")
        return sinks[name]

    def summary(self) -> dict[str, Any]:
        """What `run --json` prints."""
        return summarise(
            self._driver,
            self._started_at,
            self._ended_at or time.monotonic(),
            self._seconds,
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
