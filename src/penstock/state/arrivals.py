"""The log of files that a growing source has met, in stream order: positions in offsets mean these files.

    files/STREAM/00000003.json    the files found the fourth time, a `FileEntry` each

A file of the log is written before the offset that counts on it. A run that finds a log goes on with it, whatever else
arrived. When a log has become long, a file of it may begin the log again: those before it count no more, and are
deleted. `sources.tail` decides what is logged and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.state import checked
from penstock.state.files import put_if_absent

FOLDER = "files"
LONG = 32  # files of a log


@dataclass(frozen=True)
class FileEntry:
    """What is known of a file, or of a part of one.

    Without a `path` it stands for the rows of files that were read and may be gone. `size`, `mtime` (nanoseconds, 0
    where the source does not look at it) and `digest` tell whether the file is still the same. `reading` is what its
    source needs to read it, as JSON.
    """

    path: str
    rows: int
    size: int
    digest: str
    mtime: int
    reading: Mapping[str, Any]


def to_json(entry: FileEntry) -> dict[str, Any]:
    return asdict(entry)


def from_json(found: Mapping[str, Any]) -> FileEntry:
    return FileEntry(**found)


def logged(checkpoint: Path, stream: str) -> list[FileEntry]:
    """All files of the log, in stream order."""
    found: list[FileEntry] = []
    for path in _paths(checkpoint, stream):
        part = checked.decode(path.read_bytes(), path, "list of files")
        found = ([] if part["restart"] else found) + [from_json(entry) for entry in part["entries"]]
    return found


def log(checkpoint: Path, stream: str, entries: Sequence[FileEntry], restart: bool = False) -> bool:
    """Append to the log, or begin it again with these files alone; False if another run wrote there first."""
    before = _paths(checkpoint, stream)
    number = int(before[-1].stem) + 1 if before else 0
    body = {"entries": [to_json(entry) for entry in entries], "restart": restart}
    if not put_if_absent(_path(checkpoint, stream, number), checked.encode(body)):
        return False
    for path in before if restart else ():
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
