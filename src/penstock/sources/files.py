"""Finds the local files that an address means: a file, a folder or a glob. All sources of files use it.

    address ──► Address.of (checked text) ──► matching (paths now, in name order)

Files that are still being written are passed over by their names. So a folder can be filled while a run reads it:
write under such a name, then rename.
"""

from __future__ import annotations

import glob
import os
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeVar
from urllib.parse import unquote, urlparse

from penstock.errors import RunError, SourceError
from penstock.sources.base import Position, Split
from penstock.state.arrivals import FileEntry

Found = TypeVar("Found")

TWICE = "a source is read more than once: write the records to a file first"
UNFINISHED = (".tmp", ".part", ".crdownload")


def unfinished(name: str) -> bool:
    """Whether a name, by custom, is hidden or of a file still being written: `.x`, `_x`, `x.tmp`, `x.part`, …"""
    return name.startswith((".", "_")) or name.endswith(UNFINISHED)


@dataclass(frozen=True)
class Address:
    """What stands after the scheme. `suffixes` are those of files in a folder; a glob says its own."""

    scheme: str
    text: str
    place: str
    suffixes: tuple[str, ...]

    @classmethod
    def of(cls, scheme: str, text: str, suffixes: tuple[str, ...]) -> Address:
        if not text or text.endswith(":"):
            example = f"{scheme}:FOLDER/*{suffixes[0]}"
            raise SourceError(f"no {scheme} file given", f"write {scheme}:FILE, {scheme}:FOLDER or {example}")
        return cls(scheme, text, _local(text), suffixes)

    def matching(self) -> list[str]:
        """Absolute paths of the files that are there now, in name order; none is no error here."""
        if os.path.isfile(self.place):
            return [self.place]
        if os.path.isdir(self.place):
            return self._in_folder()
        if glob.has_magic(self.place):
            return sorted(filter(self._finished, glob.glob(self.place, recursive=True)))
        if os.path.exists(self.place):
            raise SourceError(f"'{self.text}' is neither a file nor a folder", TWICE)
        return []

    def required(self, declared: bool) -> list[str]:
        """The same at opening: no file is an error, but for folders and globs with declared columns."""
        found = self.matching()
        collection = os.path.isdir(self.place) or glob.has_magic(self.place)
        if found or (declared and collection):
            return found
        later = "or declare the stream's columns to start before the first file is there"
        if os.path.isdir(self.place):
            kinds = ", ".join(f"*{suffix}" for suffix in self.suffixes[:1])
            deep = f"files in folders below it are found by {self.place}/**/*{self.suffixes[0]}"
            raise SourceError(f"no {kinds} file in folder '{self.place}'", f"{deep}; {later}")
        if collection:
            raise SourceError(f"no file matches '{self.text}'", f"it was looked up as {self.place}; {later}")
        try:
            os.stat(self.place)
        except PermissionError as error:  # of a folder on the way
            raise unreadable(self.place, error) from error
        except OSError:
            pass
        raise SourceError(f"no such file or folder: '{self.text}'", f"it was looked up as {self.place}")

    def name(self, path: str) -> str:
        """A file's name for messages: from where the address begins to vary."""
        return os.path.relpath(path, self._root())

    def _root(self) -> str:
        if not glob.has_magic(self.place) or os.path.exists(self.place):
            return self.place if os.path.isdir(self.place) else os.path.dirname(self.place)
        root = self.place
        while glob.has_magic(root):
            root = os.path.dirname(root)
        return root

    def _finished(self, path: str) -> bool:
        below = os.path.relpath(path, self._root()).split(os.sep)
        return os.path.isfile(path) and not any(unfinished(part) for part in below)

    def _in_folder(self) -> list[str]:
        try:
            names = sorted(os.listdir(self.place))
        except OSError as error:
            raise SourceError(
                f"cannot list folder '{self.place}': {error.strerror}", "check its permissions"
            ) from error
        wanted = (name for name in names if name.endswith(self.suffixes) and not unfinished(name))
        return [path for path in (os.path.join(self.place, name) for name in wanted) if os.path.isfile(path)]


def _local(path: str) -> str:
    if path.startswith("file:"):
        parts = urlparse(path)
        if parts.netloc not in ("", "localhost"):
            raise SourceError(f"'{path}' names another host", "write file:///folder/name")
        path = unquote(parts.path)
    return os.path.abspath(os.path.expanduser(path))


def regular(path: str) -> os.stat_result:
    """Size and time of a file that can be read more than once."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise SourceError(f"'{path}' is not a regular file", TWICE)
    return found


def starts_of(rows: Iterable[int], first: Position) -> list[Position]:
    """Where files with these numbers of records start, one after the other from `first`; last, where they end."""
    return [Position(at) for at in accumulate(rows, initial=first)]


def files_at(starts: Sequence[Position], split: Split) -> tuple[slice, Position]:
    """(files that hold a split, where the first of them starts), of files that start at `starts`."""
    low = max(0, bisect_right(starts, split.start) - 1)
    high = max(low, bisect_left(starts, split.stop))
    return slice(low, high), starts[low] if low < len(starts) - 1 else split.start


def arrived(path: str, look: Callable[[str], Found]) -> Found | None:
    """What a look at a new file finds; None if the file is gone again."""
    try:
        return look(path)
    except SourceError as error:
        if not os.path.exists(path):
            return None
        raise RunError(error.fact, error.hint) from error


def in_short(entries: Sequence[FileEntry], nothing: Mapping[str, Any]) -> list[FileEntry]:
    """See `sources.base.GrowingSource.done`; `nothing` is what the source needs to read no rows of a file."""
    last = {entry.path: entry for entry in entries}
    gone = replace(_without_rows(entries[-1], nothing), path="", rows=sum(entry.rows for entry in entries))
    return [gone, *(_without_rows(entry, nothing) for path, entry in last.items() if path and os.path.exists(path))]


def _without_rows(entry: FileEntry, nothing: Mapping[str, Any]) -> FileEntry:
    return replace(entry, rows=0, reading={**entry.reading, **nothing})


def unreadable(path: str, error: OSError) -> SourceError:
    return SourceError(f"cannot read '{path}': {error.strerror or error}", "check that it exists and may be read")
