"""Files of text as a stream: what CSV and JSON sources share, all but the meaning of a line.

    Address ──► layout of each file (header, columns) ──► index_text ──► TextFile = entry
    Split ──► its files ──► read_text (seek, skip, Arrow batches)

A file is read through once, when it is first asked how many records there are, to count them and to remember where
every 4096th begins; so positions are exact and any range of rows is reached by a short skip. Opening reads the heads
of files only: a run that goes on from a log never counts what it has counted before.

Delivery: files must not change while a run lasts; a task that meets another size or time compares the whole file.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, Protocol

import pyarrow as pa
import xxhash

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.sources.base import BAD, UNREADABLE, Entry, Split, arrow_field, even_splits
from penstock.sources.files import Address, regular, unreadable
from penstock.sources.text_blocks import Format, Index, index_text, place_of, read_text
from penstock.sources.unpack import head, packed, text_of

HEAD = 1 << 20
BOM, WIDE = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Layout:
    """What a file's first lines say: its columns in order (None where names do not come in order), and how many
    records are no data."""

    columns: tuple[str, ...] | None
    skip: int = 0


class TextFormat(Format, Hashable, Protocol):
    """A kind of text."""

    @property
    def scheme(self) -> str: ...

    def layout(self, text: bytes, final: bool, name: str, declared: tuple[Field, ...]) -> Layout:
        """Look at the first bytes of a file; a SourceError if it does not fit the columns."""
        ...


@dataclass(frozen=True)
class TextFile:
    """A file whose records are counted. `size`, `mtime` (nanoseconds) and `digest` are of the file as it lies there."""

    path: str
    size: int
    mtime: int
    digest: str
    columns: tuple[str, ...] | None
    index: Index

    def entry(self) -> Entry:
        known = {"path": self.path, "rows": self.index.rows, "bytes": self.size, "digest": self.digest}
        columns = None if self.columns is None else list(self.columns)
        reading = {"columns": columns, "stride": self.index.stride, "index": list(self.index.places)}
        return {**known, "mtime": self.mtime, **reading}

    @classmethod
    def of(cls, entry: Entry) -> TextFile:
        index = Index(entry["rows"], entry["stride"], tuple(entry["index"]))
        columns = None if entry["columns"] is None else tuple(entry["columns"])
        return cls(entry["path"], entry["bytes"], entry["mtime"], entry["digest"], columns, index)


@dataclass(frozen=True)
class TextSource:
    """Files of one format, one after the other. `paths` are those met at opening; `known` those that are counted."""

    address: Address
    form: TextFormat
    fields: tuple[Field, ...]
    cache: str
    paths: tuple[str, ...]
    known: tuple[TextFile, ...] | None = None
    first: int = 0  # row number of the first file's first row; not 0 where files before it were left out

    def schema(self) -> pa.Schema:
        return pa.schema(map(arrow_field, self.fields))

    def rows(self) -> int:
        return self._starts[-1]

    def cut(self, start: int, limit: int) -> int:
        return min(start + limit, self.rows())

    def splits(self, start: int, stop: int, parallelism: int) -> list[Split]:
        return even_splits(start, stop, parallelism)

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        by_name = {field.name: field for field in self.fields}
        asked = [by_name[name] for name in columns]
        at = max(0, bisect_right(self._starts, split.start) - 1)
        while at < len(self.files) and self._starts[at] < split.stop:
            file, base = self.files[at], self._starts[at]
            start, stop = max(0, split.start - base), min(file.index.rows, split.stop - base)
            if stop > start:
                plan = self.form.plan(file.columns, asked)
                yield from read_text(self._text(file), file.index, start, stop, self.form, plan, asked, batch_rows)
            at += 1

    def place(self, row: int) -> str:
        at = bisect_right(self._starts, row) - 1
        file, number = self.files[at], row - self._starts[at]
        where = f"{self.address.name(file.path)}, record {number + 1}"
        try:
            byte = place_of(self._text(file), file.index, number, self.form)
        except (SourceError, RunError):  # a message about one record must not fail for the file's sake
            return where
        return f"{where}, byte {byte}{' of its text' if packed(file.path) else ''}"

    def narrowed(self, split: Split) -> TextSource:
        low = max(0, bisect_right(self._starts, split.start) - 1)
        high = max(low, bisect_left(self._starts, split.stop))
        first = self._starts[low] if low < len(self.files) else split.start
        return replace(self, paths=(), known=self.files[low:high], first=first)

    def fingerprint(self) -> str:
        return hashlib.blake2b(f"{self.form!r} {self.fields!r}".encode(), digest_size=16).hexdigest()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(file.entry() for file in self.files)

    def arrivals(self) -> list[Entry]:
        known = {file.path for file in self.files}
        came = (self._arrived(path) for path in self.address.matching() if path not in known)
        return [file.entry() for file in came if file is not None]

    def extended(self, entries: Sequence[Entry]) -> TextSource:
        return replace(self, paths=(), known=(*self.files, *map(TextFile.of, entries)))

    def restarted(self, entries: Sequence[Entry]) -> TextSource:
        return replace(self, paths=(), known=tuple(map(TextFile.of, entries)), first=0)

    def changed(self, entry: Entry) -> str | None:
        try:
            found = regular(entry["path"])
            if found.st_size == entry["bytes"] and found.st_mtime_ns == entry["mtime"]:
                return None
            same = found.st_size == entry["bytes"] and _digest(entry["path"]) == entry["digest"]
        except SourceError:
            return "has changed" if os.path.exists(entry["path"]) else "is missing"
        return None if same else "has changed"

    @cached_property
    def files(self) -> tuple[TextFile, ...]:
        if self.known is not None:
            return self.known
        return tuple(self._counted(path) for path in self.paths)

    @cached_property
    def _starts(self) -> list[int]:
        """Row numbers at which files start, and the end of the stream last."""
        return list(accumulate((file.index.rows for file in self.files), initial=self.first))

    def __getstate__(self) -> dict[str, Any]:
        """Files are counted before they are sent to others, who would count them again."""
        return {**self.__dict__, "known": self.files, "paths": ()}

    def _counted(self, path: str) -> TextFile:
        found = regular(path)
        file = _count(path, found.st_size, found.st_mtime_ns, self.form, self.fields, self.cache)
        after = regular(path)
        if (after.st_size, after.st_mtime_ns) != (found.st_size, found.st_mtime_ns):
            raise Unfinished(f"'{path}' is still being written", "write under another name, such as .x, and rename")
        return file

    def _arrived(self, path: str) -> TextFile | None:
        """A new file; None if it is gone again or not yet whole."""
        try:
            return self._counted(path)
        except Unfinished:
            return None
        except SourceError as error:
            if not os.path.exists(path):
                return None
            raise RunError(error.fact, error.hint) from error

    def _text(self, file: TextFile) -> str:
        """Where the file's text is, if it is still the file that was counted."""
        problem = self.changed({"path": file.path, "bytes": file.size, "mtime": file.mtime, "digest": file.digest})
        if problem:
            raise RunError(f"'{file.path}' {problem} since the run began", "restore it, or start with a new checkpoint")
        return text_of(file.path, self.cache)


class Unfinished(SourceError):
    """A file that grew while it was counted."""


@lru_cache(maxsize=1024)
def _count(path: str, size: int, mtime: int, form: TextFormat, fields: tuple[Field, ...], cache: str) -> TextFile:
    """Read a file once; an app opens its sources several times, hence the cache."""
    text = text_of(path, cache)
    begin, final = head(text, HEAD)
    layout = form.layout(without_mark(begin, path), final, path, fields)
    digest = xxhash.xxh3_128()
    offset = len(BOM) if begin.startswith(BOM) else 0
    digest.update(begin[:offset])
    index = index_text(text, offset, layout.skip, form, digest.update)
    whole = _digest(path) if packed(path) else digest.hexdigest()
    return TextFile(path, size, mtime, whole, layout.columns, index)


def without_mark(text: bytes, path: str) -> bytes:
    """A file's first bytes without the mark of UTF-8; other encodings are refused."""
    if text.startswith(WIDE):
        raise SourceError(f"'{path}' is UTF-16", "convert it to UTF-8: iconv -f UTF-16 -t UTF-8")
    return text.removeprefix(BOM)


def _digest(path: str) -> str:
    digest = xxhash.xxh3_128()
    try:
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(1 << 22):
                digest.update(piece)
    except OSError as error:
        raise unreadable(path, error) from error
    return digest.hexdigest()


def refuse_flags(fields: tuple[Field, ...], source: str) -> None:
    """Names that batches use for flags cannot be columns."""
    for field in fields:
        if field.name.startswith(BAD) or field.name == UNREADABLE:
            raise SourceError(f"column '{field.name}' of {source} has a name that is taken", "rename it")
