"""Named points at which a test can kill a process: `reach("manifest.write")` does nothing in production.

`PENSTOCK_FAULT=point:n` makes the n-th visit of that point in a process end it at once, as `kill -9` would;
`PENSTOCK_FAULT_ONCE=FILE` lets only the first of several processes die (the file marks that it happened).
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "driver.start",
    "task.chunk",
    "segment.write",
    "segment.close",
    "batch.collected",
    "merge.block",
    "merge.write",
    "compaction.start",
    "windows.write",
    "manifest.write",
    "manifest.written",
    "sink.rename",
    "garbage.delete",
)

_point, _, _count = os.environ.get("PENSTOCK_FAULT", "").partition(":")
_left = int(_count or 1)


def reach(point: str) -> None:
    """Die here if this visit was asked to."""
    global _left
    if point != _point:
        return
    _left -= 1
    if _left == 0 and _first(os.environ.get("PENSTOCK_FAULT_ONCE", "")):
        os.kill(os.getpid(), signal.SIGKILL)


def _first(marker: str) -> bool:
    if not marker:
        return True
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
