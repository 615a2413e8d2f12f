"""The log of files that a growing source has met, in stream order: positions in offsets mean these files.

    files/STREAM/00000003.json    files found the fourth time, entries of `sources.base`

Written before the offset that counts on them; a run that finds a log goes on with it, whatever else arrived. A file of
a log that has become long may say everything *anew*: those before it count no more, and are deleted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.state import checked
from penstock.state.files import put_if_absent

FOLDER = "files"
LONG = 32  # files of a log


def logged(checkpoint: Path, stream: str) -> list[dict[str, Any]]:
    """All files of the log, in stream order."""
    found: list[dict[str, Any]] = []
    for path in _paths(checkpoint, stream):
        part = checked.decode(path.read_bytes(), path, "list of files")
        found = part["entries"] if part["anew"] else found + part["entries"]
    return found


def log(checkpoint: Path, stream: str, entries: list[dict[str, Any]], anew: bool = False) -> bool:
    """Append to the log, or begin it anew; False if another run wrote there first."""
    before = _paths(checkpoint, stream)
    number = int(before[-1].stem) + 1 if before else 0
    if not put_if_absent(_path(checkpoint, stream, number), checked.encode({"entries": entries, "anew": anew})):
        return False
    for path in before if anew else ():
        path.unlink(missing_ok=True)
    return True


def is_long(checkpoint: Path, stream: str) -> bool:
    return len(_paths(checkpoint, stream)) >= LONG


def _paths(checkpoint: Path, stream: str) -> list[Path]:
    return sorted(_folder(checkpoint, stream).glob("[0-9]*.json"))


def _path(checkpoint: Path, stream: str, number: int) -> Path:
    return _folder(checkpoint, stream) / f"{number:08d}.json"


def _folder(checkpoint: Path, stream: str) -> Path:
    return checkpoint / FOLDER / quote(stream, safe="").replace(".", "%2E")  # a stream may be called ".."
