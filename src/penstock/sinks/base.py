"""The contract of a sink: stage in tasks, publish by batch, idempotently.

    open_sink ──► bind ──► publish (what a killed run committed) ──► prepare ──► batch: stage … check, commit, publish

`stage` runs in a merge task and writes a part of a batch's result where readers do not look; the driver puts
the list of staged parts into the manifest; `publish` makes a committed batch visible as a whole and may run
again after a failure. What delivery that gives stands in each module.

To add a sink:
1. a module with a class of this shape: a `sinks.folder.FolderSink` where a batch becomes files that stay, a
   `sinks.batches.BatchSink` where its rows are handed to somebody else;
2. its scheme in `sinks.registry.SCHEMES`;
3. tests like `tests/unit/sinks/test_sink_formats.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import pyarrow as pa

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
Part = tuple[str, str]  # staged and final name


@dataclass(frozen=True)
class Owner:
    """A checkpoint whose results these are: its identity, and where it is."""

    id: str
    checkpoint: str


class DriverOnly(Generic[T]):
    """Something that a sink needs on the driver and that cannot travel: a session, a user's function.

    A sink that is pickled to a task arrives there with empty ones.
    """

    def __init__(self, value: T | None = None) -> None:
        self._value = value

    def set(self, value: T) -> None:
        self._value = value

    def get(self) -> T:
        if self._value is None:
            raise AssertionError("used in a task, or before Sink.bind")
        return self._value

    def __reduce__(self) -> tuple[type[DriverOnly[T]], tuple[()]]:
        return DriverOnly, ()


class Sink(Protocol):
    """Where a query's results go. Instances are pickled to tasks, which only call `stage`."""

    def bind(self, spark: SparkSession) -> None:
        """Driver, before anything else: the session that `publish` may need."""
        ...

    def prepare(self, owner: Owner, overwrite: bool) -> None:
        """Driver, before the first batch of a run: claim the place for its owner, or refuse; clear what no
        manifest names. Comes after the roll forward of what a killed run committed."""
        ...

    def check(self, owner: Owner) -> None:
        """Driver, before a batch is committed: raise if the place is no longer the owner's."""
        ...

    def stage(self, table: pa.Table, batch: int, part: int, attempt: str) -> list[str]:
        """Task: write rows aside; returns [staged, final] names for the manifest."""
        ...

    def stage_empty(self, batch: int, attempt: str) -> list[str]:
        """Driver: stage a result without rows, for a query that ends without any; [] where rows are only handed on."""
        ...

    def publish(self, batch: int, parts: list[Part]) -> None:
        """Driver, after the commit: deliver all parts of the query in this batch, in order. Doing it again
        does nothing, or nothing worse than the sink's delivery says; without parts it does nothing."""
        ...

    def place(self) -> str:
        """Where the results go, for people and for the identity of a checkpoint."""
        ...

    def needs_spark(self) -> bool:
        """Whether there is no delivering without a session."""
        ...

    def claim(self) -> str | None:
        """What no other query of the app may write to; None if the place can be shared."""
        ...

    def results(self, spark: SparkSession) -> DataFrame:
        """What was published so far; a ConfigError where results are not kept."""
        ...

    def table(self) -> pa.Table:
        """The same without Spark: the schema of the results, also where there are none; rows as they were written."""
        ...


def not_kept(query: str, place: str) -> ConfigError:
    """What `results` raises of a sink that hands rows on or drops them."""
    return ConfigError(
        f"the results of query '{query}' go to {place} and are not kept",
        "send them to parquet:FOLDER or memory: to read them again",
    )
