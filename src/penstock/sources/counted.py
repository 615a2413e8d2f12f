"""Files whose records are counted when they are met: what sources of text and of packets share.

    Address ──► paths ──► _count: a file's records, and where some of them are ──► known
    Split ──► its files ──► _read (a subclass knows how)

A file is read through once. After that positions are exact, and a task reaches its records by a short skip. Opening a
source reads only the heads of its files: a run that goes on from a log does not count files again.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import pyarrow as pa
import xxhash

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.sources.base import OF_FILES, START, Abilities, Position, Split, even_splits
from penstock.sources.files import Address, arrived, files_at, in_short, regular, starts_of, unreadable
from penstock.state.arrivals import FileEntry

PIECE = 1 << 22


class CountedFile(Protocol):
    """A file, or a part of one, whose records are counted."""

    @property
    def path(self) -> str: ...

    @property
    def rows(self) -> int: ...

    def entry(self) -> FileEntry: ...


File = TypeVar("File", bound=CountedFile)


class Unfinished(SourceError):
    """A file that is still being written."""


@dataclass(frozen=True)
class CountedFiles(ABC, Generic[File]):
    """Files one after the other. `paths` are those met at opening; `known` those that are counted."""

    abilities: ClassVar[Abilities] = OF_FILES
    address: Address
    fields: tuple[Field, ...]
    cache: str
    paths: tuple[str, ...]
    known: tuple[File, ...] | None = None
    first: Position = START  # of the first file's first record; not the start where files before it were left out

    @abstractmethod
    def _count(self, path: str) -> list[File]:
        """Count a file; `Unfinished` if it is still being written."""

    @abstractmethod
    def _read(
        self, file: File, start: int, stop: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Records [start, stop) of a file."""

    @abstractmethod
    def _place(self, file: File, row: int) -> str:
        """Where a record of a file stands."""

    @abstractmethod
    def _of(self, entry: FileEntry) -> File:
        """A file as the log remembers it."""

    def rows(self) -> Position:
        return self._starts[-1]

    def cut(self, start: Position, limit: int) -> Position:
        return min(Position(start + limit), self.rows())

    def splits(self, start: Position, stop: Position, parallelism: int) -> list[Split]:
        return even_splits(start, stop, parallelism)

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        for file, _, start, stop in self._parts(split):
            yield from self._read(file, start, stop, columns, batch_rows)

    def _parts(self, split: Split) -> Iterator[tuple[File, Position, int, int]]:
        """The files of a split, where each starts, and which of its records [start, stop) are in the split."""
        at = max(0, bisect_right(self._starts, split.start) - 1)
        while at < len(self.files) and self._starts[at] < split.stop:
            file, base = self.files[at], self._starts[at]
            start, stop = max(0, split.start - base), min(file.rows, split.stop - base)
            if stop > start:
                yield file, base, start, stop
            at += 1

    def place(self, at: Position) -> str:
        file = bisect_right(self._starts, at) - 1
        return self._place(self.files[file], at - self._starts[file])

    def narrowed(self, split: Split) -> Self:
        held, first = files_at(self._starts, split)
        return replace(self, paths=(), known=self.files[held], first=first)

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        return tuple(file.entry() for file in self.files)

    def arrivals(self) -> list[FileEntry]:
        known = {file.path for file in self.files}
        came = (self._arrived(path) for path in self.address.matching() if path not in known)
        return [file.entry() for files in came for file in files]

    def extended(self, entries: Sequence[FileEntry]) -> Self:
        return replace(self, paths=(), known=(*self.files, *map(self._of, entries)))

    def restarted(self, entries: Sequence[FileEntry]) -> Self:
        return replace(self, paths=(), known=tuple(map(self._of, entries)), first=START)

    def done(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        return in_short(entries, {"index": []})

    def live(self) -> Self:
        return self

    def changed(self, entry: FileEntry) -> str | None:
        try:
            found = regular(entry.path)
            if found.st_size == entry.size and found.st_mtime_ns == entry.mtime:
                return None
            same = found.st_size == entry.size and file_digest(entry.path) == entry.digest
        except SourceError:
            return what_happened(entry)
        return None if same else "has changed"

    @cached_property
    def files(self) -> tuple[File, ...]:
        if self.known is not None:
            return self.known
        return tuple(file for path in self.paths for file in self._count(path))

    @cached_property
    def _starts(self) -> list[Position]:
        """Where files start, and the end of the stream last."""
        return starts_of((file.rows for file in self.files), self.first)

    def __getstate__(self) -> dict[str, Any]:
        """Files are counted before they are sent to others, who would count them again."""
        return {**self.__dict__, "known": self.files, "paths": ()}

    def _arrived(self, path: str) -> list[File]:
        """A new file; none if it is gone again or not yet whole."""
        return arrived(path, self._count_whole) or []

    def _count_whole(self, path: str) -> list[File]:
        try:
            return self._count(path)
        except Unfinished:
            return []

    def _require_unchanged(self, entry: FileEntry) -> None:
        problem = self.changed(entry)
        if problem:
            raise RunError(
                f"'{entry.path}' {problem} since the run began", "restore it, or start with a new checkpoint"
            )


def what_happened(entry: FileEntry) -> str:
    """What happened to a file that cannot be looked at."""
    return "has changed" if os.path.exists(entry.path) else "is missing"


def require_quiet(path: str, before: os.stat_result) -> None:
    """A file that changed while it was counted is not finished."""
    after = regular(path)
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise Unfinished(f"'{path}' is still being written", "write under another name, such as .x, and rename")


def file_digest(path: str, begin: int = 0, stop: int | None = None) -> str:
    """Of bytes [begin, stop) of a file."""
    digest, left = xxhash.xxh3_128(), (1 << 63) if stop is None else stop - begin
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(begin)
            while left and (piece := file.read(min(left, PIECE))):
                digest.update(piece)
                left -= len(piece)
    except OSError as error:
        raise unreadable(path, error) from error
    return digest.hexdigest()
