"""Huge pages, which numpy asks for when an array is large: where memory is fragmented the system has to make them
first, and that took more than half of the time of a task.

Neighbours: `runtime.spark.daemon`, from which workers come, calls this before numpy is loaded.
"""

from __future__ import annotations

import os


def without_huge_pages() -> None:
    """For this process, if numpy is not loaded yet; unless the environment says something about it."""
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
