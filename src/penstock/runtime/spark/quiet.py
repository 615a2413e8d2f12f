"""Spark's daemon for the processes that plan and follow a query, as it is, but that it ends quietly.

When the JVM closes a worker that it has not used for a minute, or has gone before it, Spark's daemon prints a
traceback.
Nothing is wrong then: what the worker did was read long ago.
"""

from __future__ import annotations

from typing import Any

from pyspark import daemon

run_worker = daemon.worker


def worker(sock: Any, authenticated: bool) -> int:
    """Spark's worker, which ends when nobody listens any more."""
    try:
        return run_worker(sock, authenticated)
    except BrokenPipeError:
        return 1


def serve() -> None:
    """Fork workers until the JVM is gone."""
    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    serve()
