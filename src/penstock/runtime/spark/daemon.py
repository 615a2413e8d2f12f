"""spark.python.daemon.module: import and compile once, before the Python workers fork.

Every task then finds the kernels compiled and pyarrow loaded; a fresh worker costs a fork. What is there by then is
kept from the collector: Spark's daemon has it look through everything after each task, which took 50 ms.
"""

from __future__ import annotations

from importlib.util import find_spec

from penstock.runtime.preload import preload
from penstock.runtime.spark.quiet import serve

PRELOADED = (
    "penstock.runtime.merge.join.spread",
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.datasource",
)

if __name__ == "__main__":
    # pyarrow loads pandas when it first meets an array of numpy's: a fifth of a second in every worker.
    preload(*PRELOADED, *(["pandas"] if find_spec("pandas") else []))
    serve()
