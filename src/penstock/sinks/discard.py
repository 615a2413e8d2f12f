"""`discard:` drops rows in the task that made them; they are computed, and counted in the account.

For apps that are run for their account alone, and to measure what computing costs without writing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.sinks.base import Owner, Part, not_kept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class DiscardSink:
    """Rows of one query, for nobody."""

    query: str

    def bind(self, spark: SparkSession) -> None:
        """It needs no session,"""

    def prepare(self, owner: Owner, overwrite: bool) -> None:
        """has no place that could be claimed,"""

    def check(self, owner: Owner) -> None:
        """nor lost,"""

    def stage(self, table: pa.Table, batch: int, part: int, attempt: str) -> list[str]:
        return ["", ""]

    def stage_empty(self, batch: int, attempt: str) -> list[str]:
        return []

    def publish(self, batch: int, parts: list[Part]) -> None:
        """and nothing to show."""

    def place(self) -> str:
        return "discard:"

    def needs_spark(self) -> bool:
        return False

    def claim(self) -> str | None:
        return None

    def results(self, spark: SparkSession) -> DataFrame:
        raise not_kept(self.query, self.place())

    def table(self) -> pa.Table:
        raise not_kept(self.query, self.place())
