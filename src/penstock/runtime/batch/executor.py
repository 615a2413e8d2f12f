"""What runs the tasks of a batch and the shares of a merge: part of an engine (`runtime.engine`).

    tasks of a batch      split_told, frame_task         ──► TaskReport          `run_tasks`
    shares of a merge     merge_share, compact_share     ──► MergeReport, …      `run_shares`

Nothing else in this folder but `frames`, which only Spark has, knows which engine it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from penstock.runtime.batch.outcome import told
from penstock.runtime.machine import memory_taken, note_baseline
from penstock.state.protocol import CompactionReport, Memory, MergeReport, Spent, TaskReport

R = TypeVar("R", MergeReport, CompactionReport)
Given = TypeVar("Given", contravariant=True)


class Executor(Protocol[Given]):
    """`Given` is a batch as the engine hands it over."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time now."""
        ...

    def run_tasks(self, given: Given) -> list[TaskReport]:
        """Run the tasks of a batch; their reports, in the order of the tasks."""
        ...

    def run_shares(self, count: int, run: Callable[[int], R], kind: type[R]) -> list[R]:
        """Run numbered tasks that give one report each."""
        ...


def share_told(run: Callable[[int], R], number: int) -> str:
    """What the task of a share tells, with what it took."""

    def measured() -> R:
        started = time.perf_counter()
        note_baseline()
        report = run(number)
        return replace(report, spent=Spent(time.perf_counter() - started, Memory(*memory_taken())))

    return told(number, measured, lambda error: f"a merge task failed: {error}")
