"""Whether Spark's JVM has ended under a run: killed, out of memory, or crashed.

What Python meets then depends on the moment: a refused or broken connection, an empty answer of py4j's, or an object
that PySpark does not have any more. For users it is one thing, with one message. This module loads no Spark.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from penstock.errors import RunError

FACT = "Spark's JVM ended before the run did"
HINT = "run again: with --checkpoint it goes on from there; if memory ran out, lower --task-memory or --parallelism"
REAPED_SECONDS = 2.0  # a connection breaks a moment before the process is seen to have ended


def jvm_gone() -> RunError:
    return RunError(FACT, HINT)


def tells_of_it(error: BaseException) -> bool:
    """Whether an error was met because the JVM is gone."""
    broken = any(_broken(one) for one in _chain(error))
    ended = _has_ended(REAPED_SECONDS if broken else 0.0)
    return broken if ended is None else ended


def _broken(error: BaseException) -> bool:
    """No other connection is tried where this is asked, but for those of sinks that are functions of the user's."""
    return isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()  # PySpark raises errors again that it has met before: a chain may be a ring
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _has_ended(patience: float) -> bool | None:
    """Of a JVM that PySpark started; None of any other, or where there is none."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    if process is None:
        return None
    deadline = time.monotonic() + patience
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return process.poll() is not None
