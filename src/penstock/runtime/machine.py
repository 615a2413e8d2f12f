"""The machine under a process: cache, resident memory, huge pages.

This module loads no other: the daemon of Spark's workers asks it about huge pages before numpy is loaded.
"""

from __future__ import annotations

import os
import resource
import sys
from functools import lru_cache
from pathlib import Path

L2 = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
USUAL = 1 << 20
UNITS = {"K": 1 << 10, "M": 1 << 20}

# Libraries of linear algebra start threads of their own when they are loaded; tasks have no use for them. What a task
# frees, the next one needs: the GNU C library would give it back to the system, which takes longer than using it does.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ENVIRONMENT |= {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(512 << 20)}
ENVIRONMENT |= {"NUMPY_MADVISE_HUGEPAGE": "0"}  # `without_huge_pages` says why

_baseline: dict[int, int] = {}  # by process id: forked children must not inherit it


@lru_cache(maxsize=1)
def cache_size() -> int:
    """Bytes of a core's level-2 cache; a usual size where the system does not say."""
    try:
        text = L2.read_text().strip()
    except OSError:
        return USUAL
    digits, unit = text.rstrip("KM"), text[-1:]
    return int(digits) * UNITS.get(unit, 1) if digits.isdigit() else USUAL


def without_huge_pages() -> None:
    """Have numpy not ask for huge pages, unless the environment says otherwise. It must not be loaded yet.

    Where memory is fragmented, the system has to make such pages first: that took more than half of a task's time.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", ENVIRONMENT["NUMPY_MADVISE_HUGEPAGE"])


def worker_environment() -> dict[str, str]:
    """For a process that workers are forked from, or one like these: it finds the modules that this one finds."""
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    return ENVIRONMENT | os.environ | {"PYTHONPATH": path}


def cache_folder() -> Path:
    """The folder for what may be made again: that of the user, else one below the temporary files."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given)
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        import tempfile

        return Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"


def note_baseline() -> int:
    """Remember, and return, the memory of this process before its first task.

    That is interpreter, libraries and compiled kernels, most of it shared with the daemon it was forked from.
    """
    return _baseline.setdefault(os.getpid(), _resident())


def memory_taken() -> tuple[int, int]:
    """Bytes of this process before its first task, and the most it ever had."""
    return note_baseline(), _peak()


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # no /proc: the peak so far is the best there is
        return _peak()
    return pages * resource.getpagesize()


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
