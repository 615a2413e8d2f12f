"""Python functions as sinks: `f(frame, batch)` gets the rows of the windows that a batch closed, as a DataFrame.

The driver calls it once per batch that has results. Delivery: at least once. It is called again if the run was killed,
or `f` failed, before the batch was marked as delivered (`batches`). The batch then has the same rows, so a function
that remembers `batch` where it writes makes it exactly once. Rows come in no particular order. The frame is good only
during the call: its files go afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import RunError
from penstock.sinks.base import DriverOnly
from penstock.sinks.batches import BatchSink
from penstock.sinks.columnar.write import write_parquet
from penstock.sinks.folder import spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Deliver = Callable[[DataFrame, int], None]

LONGEST = 500  # characters of an error's text: Spark's hold whole stack traces


@dataclass(frozen=True)
class FunctionSink(BatchSink):
    """Rows of one query for a function of the user's; neither it nor the session travels to tasks."""

    function: DriverOnly[Deliver]
    name: str
    session: DriverOnly[SparkSession] = field(default_factory=DriverOnly, repr=False, compare=False)

    def bind(self, spark: SparkSession) -> None:
        self.session.set(spark)

    def write(self, table: pa.Table, path: Path) -> None:
        write_parquet(table, self.schema, path)

    def deliver(self, batch: int, staged: list[str]) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        reader = self.session.get().read.schema(from_arrow_schema(self.schema))
        frame = reader.parquet(*map(spark_path, staged))
        try:
            self.function.get()(frame, batch)
        except Exception as error:  # whatever the user's code raises
            raise RunError(
                f"the sink {self._kind()} of query '{self.query}' failed in batch {batch}: {_summary(error)}",
                "mend it, then run again: the batch is delivered again",
            ) from error

    def _kind(self) -> str:
        return self.name.partition(" ")[0]

    def place(self) -> str:
        return self.name

    def needs_spark(self) -> bool:
        return True


def function_name(function: Any) -> str:
    """Whose function it is, alike in every run: the identity of a checkpoint holds it."""
    while isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"function {named.__module__}.{named.__qualname__}"


def _summary(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:LONGEST]}" if lines else type(error).__name__
