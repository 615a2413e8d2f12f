"""The fused source as Spark knows it by name: a streaming data source, read by `engine.source`.

Spark has a process look at it before another one reads: this module loads nothing that only a reader needs.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from penstock.runtime.engine.source import SparkReader


class FusedSource(DataSource):
    """Registered as format `penstock`; the option `job` says it all."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return "reference string"

    def streamReader(self, schema: Any) -> SparkReader:
        from penstock.runtime.batch.job import decode
        from penstock.runtime.engine.source import SparkReader

        # Called in processes of Spark alone. Ctrl-C reaches all processes of a terminal; the driver answers it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return SparkReader(decode(self.options["job"]))
