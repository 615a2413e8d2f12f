"""Seconds of this thread by function, for `benchmarks.engines.penstock_parts`: the engine's own time, told by its own
names.

The engine works on chunks of tens of thousands of records, so calls are few and watching them costs next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from cProfile import Profile
from pathlib import PurePath
from pstats import Stats
from typing import Any, TypeVar

T = TypeVar("T")


class Profiled:
    """Runs actions and knows, of any function below them, how long it took with all that it calls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._profile = Profile(time.thread_time)

    def __call__(self, action: Callable[[], T]) -> T:
        began = time.thread_time()
        try:
            return self._profile.runcall(action)
        finally:
            self.seconds += time.thread_time() - began

    def within(self, module: str, function: str) -> float:
        """Seconds in a function of a module that is named by its end (`runtime.task.task`); 0 if it was not called."""
        tail = tuple(module.split("."))
        entries: dict[tuple[str, int, str], Any] = vars(Stats(self._profile))["stats"] if self.seconds else {}
        return sum(
            float(entry[3])
            for (file, _, name), entry in entries.items()
            if name == function and PurePath(file).with_suffix("").parts[-len(tail) :] == tail
        )
