"""What an app reads: sources of penstock's own, by stream, or one DataFrame of the user's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.sources.base import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Inputs:
    """Either `sources` by stream, or `frame` as the stream `name`."""

    sources: dict[str, Source] = field(default_factory=dict)
    frame: DataFrame | None = None
    name: str = ""

    def fingerprints(self) -> dict[str, str]:
        """What must stay the same from run to run on a checkpoint."""
        if self.frame is not None:
            return {self.name: "frame:" + self.frame.schema.simpleString()}
        return {name: source.fingerprint() for name, source in self.sources.items()}

    def check_needs(self, with_spark: bool) -> None:
        """Refuse a DataFrame where there is no Spark."""
        if self.frame is not None and not with_spark:
            raise ConfigError(
                f"stream '{self.name}' is a DataFrame, which needs Spark",
                "run the app on a Spark master, or read its data from files",
            )
