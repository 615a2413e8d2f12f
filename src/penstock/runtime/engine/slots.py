"""How many tasks Spark can run at a time, as workers come and go.

Batches are cut in the process of the source, which cannot ask Spark. So the driver keeps the number in a file that both
see (`runtime.batch.job.parallelism_now` reads it); on a single machine it never changes.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.runtime.spark.master import DYNAMIC, setting
from penstock.state.files import replace

if TYPE_CHECKING:
    from pyspark import SparkContext

WATCH_SECONDS = 1.0


def slots_now(context: SparkContext) -> int:
    """Cores of the executors that have registered. Those that are allocated on demand come only for more tasks than
    there are cores: twice as many are asked for."""
    dynamic = setting(context, DYNAMIC, "false") == "true"
    return max(1, context.defaultParallelism) * (2 if dynamic else 1)


class SlotsFile:
    """The file with the number, from `watch` until `close`."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-slots-", ignore_cleanup_errors=True)
        self._path = Path(self._folder.name) / "slots"
        self._closed = threading.Event()
        self._known = slots_now(context)
        self._write()
        self._watcher = threading.Thread(target=self._watch, name="penstock-slots", daemon=True)
        self._watcher.start()

    @property
    def path(self) -> str:
        return str(self._path)

    def close(self) -> None:
        self._closed.set()
        self._watcher.join()
        self._folder.cleanup()

    def _watch(self) -> None:
        while not self._closed.wait(WATCH_SECONDS):
            with contextlib.suppress(Exception):  # the JVM may have gone; the run says so
                found = slots_now(self._context)
                if found != self._known:
                    self._known = found
                    self._write()

    def _write(self) -> None:
        replace(self._path, str(self._known).encode())
