"""Where compiled kernels are kept if numba finds no place: neither installation nor home can be written.

| writable | kernels are kept |
| --- | --- |
| `NUMBA_CACHE_DIR`, the installation, or the user's folder for caches | there, as numba decides |
| the folder for temporary files | in a folder of this user's there: all processes and runs find it |
| nothing | nowhere: each process compiles its own |

Each process decides for itself, Spark's workers and `runtime.engine.zygote` as well, and comes to the same answer.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba

config: Any = numba.config
Compile = Callable[[bool], Any]  # with a cache on disk or without


def kept(compile_kernel: Compile) -> Any:
    """A compiled kernel, from the first place that takes it."""
    try:
        return compile_kernel(True)
    except (RuntimeError, OSError):  # numba has no place, or the place no room
        before = config.CACHE_DIR
    folder = _folder_of_mine()
    if folder is not None:
        # Only while this kernel is compiled: functions of the user's own are not for this folder.
        config.CACHE_DIR = str(folder)
        try:
            return compile_kernel(True)
        except (RuntimeError, OSError):
            pass
        finally:
            config.CACHE_DIR = before
    return compile_kernel(False)


@lru_cache(maxsize=1)
def _folder_of_mine() -> Path | None:
    """A folder that only this user can write: what lies there is loaded as code."""
    try:
        folder = Path(tempfile.gettempdir(), f"penstock-kernels-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if mine else None
