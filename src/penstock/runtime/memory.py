"""Resident memory of a task's process: where it began and the most it ever was.

The baseline is what the process had when its first task began: interpreter, libraries and compiled kernels,
most of it shared with the daemon it was forked from.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from penstock.state.protocol import Memory

_baseline: dict[int, int] = {}  # by process id: forked children must not inherit it


def note_baseline() -> int:
    """Remember (and return) this process's memory before its first task."""
    return _baseline.setdefault(os.getpid(), _resident())


def memory_report() -> Memory:
    """What a task reports when it ends."""
    return Memory(note_baseline(), _peak())


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # no /proc: the peak so far is the best there is
        return _peak()
    return pages * resource.getpagesize()


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
