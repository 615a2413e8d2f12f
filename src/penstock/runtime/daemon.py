"""spark.python.daemon.module: import and compile once, before the Python workers fork.

Every task then finds the kernels compiled and pyarrow loaded; a fresh worker costs a fork.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

# Before numpy is loaded: it asks for huge pages for large arrays, and making them took more than half of the time of a
# task whose memory was fragmented.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")

from pyspark import daemon

PRELOADED = (
    "pyarrow.compute",
    "pyarrow.parquet",
    "penstock.runtime.lfta",
    "penstock.runtime.closing",
    "penstock.sources.registry",
    "penstock.sinks.registry",
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.datasource",
)

run_worker = daemon.worker


def worker(sock: Any, authenticated: bool) -> int:
    """Spark's worker, without a traceback when the JVM has gone before it: that is how every run ends."""
    try:
        return run_worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    for module in PRELOADED:
        importlib.import_module(module)
    daemon.worker = worker
    daemon.manager()
