"""Small programs that stand between Spark and the programs it calls (`java`, `workers`), and where they are kept.

They lie in a folder `bin` of this Python environment; in the user's cache if that is read-only; else in a temporary
folder, which goes with the process.
"""

from __future__ import annotations

import atexit
import contextlib
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
    """The folder above `bin` with a launcher of this name and text; it is written if it is not there."""
    for home in _homes():
        launcher = home / "bin" / name
        with contextlib.suppress(OSError):
            if not launcher.exists() or launcher.read_text() != text:
                launcher.parent.mkdir(parents=True, exist_ok=True)
                aside = launcher.with_suffix(f".{os.getpid()}")
                aside.write_text(text)
                aside.chmod(0o755)
                aside.replace(launcher)
            return home
    raise OSError("a temporary folder was made and cannot be written")


def installed(name: str) -> Iterator[str]:
    """The texts of all launchers of this name, the one that counts first."""
    for home in _lasting_homes():
        with contextlib.suppress(OSError):
            yield (home / "bin" / name).read_text()


def is_home(folder: str) -> bool:
    """Whether launchers are installed there."""
    return (Path(folder).name == NAME or folder.startswith(_temporary_prefix())) and Path(folder, "bin").is_dir()


def _homes() -> Iterator[Path]:
    yield from _lasting_homes()
    yield _temporary_home()


def _lasting_homes() -> tuple[Path, ...]:
    return Path(sysconfig.get_path("data")) / NAME, cache_folder() / NAME


@lru_cache(maxsize=1)
def _temporary_home() -> Path:
    home = Path(tempfile.mkdtemp(prefix=f"{NAME}-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def _temporary_prefix() -> str:
    return str(Path(tempfile.gettempdir()) / f"{NAME}-")
