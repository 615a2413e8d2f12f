"""Small programs that stand between Spark and the programs it calls (`java`, `workers`), and where they are kept.

They lie in a folder of this Python environment; in the user's cache if that is read-only; else in a temporary
folder, which goes with the process.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from penstock.runtime.machine import cache_folder

NAME = "penstock-launchers"


def install(name: str, text: str) -> Path:
    """The folder above `bin` with a launcher of this name and text; it is written if it is not there.

    Each text has a folder of its own: processes with different ones do not get in each other's way.
    """
    for place in _places():
        home = place / hashlib.sha256(text.encode()).hexdigest()[:12]
        launcher = home / "bin" / name
        with contextlib.suppress(OSError):
            if not launcher.exists():
                launcher.parent.mkdir(parents=True, exist_ok=True)
                aside = launcher.with_suffix(f".{os.getpid()}")
                aside.write_text(text)
                aside.chmod(0o755)
                aside.replace(launcher)
            return home
    raise OSError("a temporary folder was made and cannot be written")


def installed(name: str) -> Iterator[str]:
    """The texts of all launchers of this name."""
    for place in _lasting_places():
        for launcher in place.glob(f"*/bin/{name}"):
            with contextlib.suppress(OSError):
                yield launcher.read_text()


def is_home(folder: str) -> bool:
    """Whether a launcher is installed there."""
    return Path(folder).parent.name.startswith(NAME) and Path(folder, "bin").is_dir()


def _places() -> Iterator[Path]:
    yield from _lasting_places()
    yield _temporary_place()


def _lasting_places() -> tuple[Path, ...]:
    return Path(sysconfig.get_path("data")) / NAME, cache_folder() / NAME


@lru_cache(maxsize=1)
def _temporary_place() -> Path:
    place = Path(tempfile.mkdtemp(prefix=f"{NAME}-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place
