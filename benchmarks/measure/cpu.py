"""Processor time of an engine with all processes below it, of which some outlive their parents.

`benchmarks.comparisons.peers` starts every engine in a session of its own; Spark's Java machine and Python workers stay
in that session, so their times can be read while they live. What a command leaves behind becomes a child of ours
(`adopt`), so that it is waited for and counted.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

SUBREAPER, PARENT_DEATH = 36, 1  # PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG
PROCESSES = Path("/proc")
T = TypeVar("T")


def spent(action: Callable[[], T]) -> tuple[float, float, T]:
    """Seconds that an action takes, processor seconds of all processes of this session meanwhile, and its result."""
    begin, before = time.perf_counter(), session_seconds()
    result = action()
    return time.perf_counter() - begin, session_seconds() - before, result


def session_seconds() -> float:
    """User and system seconds of all processes of this session, with those of children they have waited for."""
    session, ticks = os.getsid(0), 0
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """User and system seconds of this process and of the children it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def adopt() -> None:
    """Become the parent of whatever our children leave behind; Linux only, elsewhere nothing happens."""
    if PROCESSES.exists():
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def end_with_parent() -> None:
    """Be killed when the process that started this one ends, however it does; Linux only."""
    if PROCESSES.exists():
        ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL, 0, 0, 0)


def wait_for_all() -> None:
    """Wait for all children, also adopted ones, so that their time counts."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def children() -> set[int]:
    """Process ids of the children that this process has now; Linux only, elsewhere none are seen."""
    me, found = Path(f"/proc/{os.getpid()}/task"), set[int]()
    for thread in me.iterdir() if me.exists() else ():
        with suppress(OSError):
            found |= {int(pid) for pid in (thread / "children").read_text().split()}
    return found


def wait_for_new(before: set[int]) -> None:
    """Wait for children that were not there before, also adopted ones."""
    while new := children() - before:
        for pid in new:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
