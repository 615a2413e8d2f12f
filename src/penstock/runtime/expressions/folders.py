"""Checkpoints whose tables this process may read. Tasks name theirs; apps without tables load nothing more."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock

MOST_FOLDERS = 16

_lock = Lock()
_folders: OrderedDict[Path, None] = OrderedDict()


def use_folder(checkpoint: Path) -> None:
    """Tables that nobody holds are in this checkpoint; or in one that was named before, as runs of one process may
    take turns."""
    with _lock:
        _folders[checkpoint.absolute()] = None
        _folders.move_to_end(checkpoint.absolute())
        while len(_folders) > MOST_FOLDERS:
            _folders.popitem(last=False)


def folders() -> list[Path]:
    """The newest first."""
    with _lock:
        return list(reversed(_folders))
