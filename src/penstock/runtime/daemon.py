"""spark.python.daemon.module: import and compile once, before the Python workers fork.

Every task then finds the kernels compiled and pyarrow loaded; a fresh worker costs a fork.
"""

from __future__ import annotations

from typing import Any

from pyspark import daemon

import penstock.sources.registry  # noqa: F401

run_worker = daemon.worker


def worker(sock: Any, authenticated: bool) -> int:
    """Spark's worker, without a traceback when the JVM has gone before it: that is how every run ends."""
    try:
        return run_worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
