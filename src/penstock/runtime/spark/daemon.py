"""spark.python.daemon.module: import and compile once, before the Python workers fork.

Every task then finds the kernels compiled and pyarrow loaded; a fresh worker costs a fork. What is there by then is
kept from the collector: Spark's daemon has it look through everything after each task, which took 50 ms.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from pyspark import daemon

from penstock.runtime.preload import preload

PRELOADED = (
    "penstock.runtime.merge.join.spread",
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
    # pyarrow loads pandas when it first meets an array of numpy's: a fifth of a second in every worker.
    preload(*PRELOADED, *(["pandas"] if find_spec("pandas") else []))
    daemon.worker = worker
    daemon.manager()
