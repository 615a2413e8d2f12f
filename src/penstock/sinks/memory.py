"""`memory:` and `memory:NAME`: results stay in the checkpoint, as Parquet files below `CHECKPOINT/memory/QUERY`.

Exactly once (`folder` says how). With a name, the run's Spark session has a temp view NAME of the results so far,
made again whenever a batch with results is published; a DataFrame that was made from it before keeps what it saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.sinks.base import DriverOnly, Owner, Part
from penstock.sinks.parquet import ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "memory"


@dataclass(frozen=True)
class MemorySink(ParquetSink):
    """Results of one query in a folder of the checkpoint, and in a view."""

    view: str = ""
    session: DriverOnly[SparkSession] = field(default_factory=DriverOnly, repr=False, compare=False)

    def bind(self, spark: SparkSession) -> None:
        self.session.set(spark)

    def prepare(self, owner: Owner, overwrite: bool) -> None:
        super().prepare(owner, overwrite)
        self._show()

    def publish(self, batch: int, parts: list[Part]) -> None:
        super().publish(batch, parts)
        if parts:
            self._show()

    def _show(self) -> None:
        if self.view:
            spark = self.session.get()
            self.results(spark).createOrReplaceTempView(self.view)

    def place(self) -> str:
        return f"memory:{self.view}"

    def needs_spark(self) -> bool:
        """For the view alone."""
        return bool(self.view)

    def claim(self) -> str | None:
        """Names of views differ by more than case, as Spark sees them."""
        return f"memory:{self.view.lower()}" if self.view else self.folder
