"""`SparkSink`: any batch writer of Spark's as a sink, from Python: JDBC, Kafka, a table format.

app.query("talkers", "SELECT …", sink=SparkSink("jdbc", options={"url": …, "dbtable": "talkers"}))

Built on `function`: one `frame.write` per batch, at least once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MODES = ("append", "overwrite", "ignore", "error", "errorifexists")
TARGETS = ("path", "dbtable", "topic")  # options that say where to; others may hold passwords


@dataclass(frozen=True)
class SparkSink:
    """What `DataFrame.write` is told. `overwrite` replaces the results of the batch before."""

    format: str
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.format:
            raise ConfigError("a SparkSink needs a format", 'write SparkSink("jdbc", options={...})')
        if self.mode.lower() not in MODES:
            raise ConfigError(f"unknown mode '{self.mode}' of a SparkSink", f"use one of {', '.join(MODES)}")

    def __call__(self, frame: DataFrame, batch: int) -> None:
        frame.write.format(self.format).mode(self.mode).options(**self.options).save()

    def place(self) -> str:
        target = next((self.options[name] for name in TARGETS if name in self.options), "")
        return f"writer {self.format}:{target}"
