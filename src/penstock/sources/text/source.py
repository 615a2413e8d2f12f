"""Files of text as a stream: all that CSV and JSON sources share, but for what a line means.

    Address ──► layout of each file (header, columns) ──► index_text ──► TextFile, an entry of the log
    Split ──► its files ──► read_text (seek, skip, Arrow batches)

`sources.counted` has the rest: which files there are, and which records are in which.

Delivery: files must not change while a run lasts. A task that meets another size or time compares the whole file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import pyarrow as pa
import xxhash

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.sources.base import BAD, FAULT, UNREADABLE, arrow_field
from penstock.sources.counted import CountedFiles, file_digest, require_quiet
from penstock.sources.files import regular
from penstock.sources.text.blocks import RecordFormat, TextIndex, index_text, place_of, read_text
from penstock.sources.unpack import head, packed, text_of
from penstock.state.arrivals import FileEntry

HEAD = 1 << 20
BOM, WIDE = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class TextLayout:
    """What a file's first lines say: its columns in order (None where names do not come in order), and how many
    records are no data."""

    columns: tuple[str, ...] | None
    skip: int = 0


class TextFormat(RecordFormat, Hashable, Protocol):
    """A kind of text."""

    @property
    def scheme(self) -> str: ...

    def layout(self, text: bytes, final: bool, name: str, declared: tuple[Field, ...]) -> TextLayout:
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
    index: TextIndex

    @property
    def rows(self) -> int:
        return self.index.rows

    def entry(self) -> FileEntry:
        columns = None if self.columns is None else list(self.columns)
        reading = {"columns": columns, "stride": self.index.stride, "index": list(self.index.places)}
        return FileEntry(self.path, self.rows, self.size, self.digest, self.mtime, reading)

    @classmethod
    def of(cls, entry: FileEntry) -> TextFile:
        reading = entry.reading
        index = TextIndex(entry.rows, reading["stride"], tuple(reading["index"]))
        columns = None if reading["columns"] is None else tuple(reading["columns"])
        return cls(entry.path, entry.size, entry.mtime, entry.digest, columns, index)


@dataclass(frozen=True)
class TextSource(CountedFiles[TextFile]):
    """Files of one format, one after the other."""

    form: TextFormat = field(kw_only=True)

    def schema(self) -> pa.Schema:
        return pa.schema(map(arrow_field, self.fields))

    def fingerprint(self) -> str:
        return hashlib.blake2b(f"{self.form!r} {self.fields!r}".encode(), digest_size=16).hexdigest()

    def _read(
        self, file: TextFile, start: int, stop: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        by_name = {one.name: one for one in self.fields}
        asked = [by_name[name] for name in columns]
        plan = self.form.plan(file.columns, asked)
        yield from read_text(self._text(file), file.index, start, stop, self.form, plan, asked, batch_rows)

    def _place(self, file: TextFile, row: int) -> str:
        where = f"{self.address.name(file.path)}, record {row + 1}"
        try:
            byte = place_of(self._text(file), file.index, row, self.form)
        except (SourceError, RunError):  # a message about one record must not fail for the file's sake
            return where
        return f"{where}, byte {byte}{' of its text' if packed(file.path) else ''}"

    def _of(self, entry: FileEntry) -> TextFile:
        return TextFile.of(entry)

    def _count(self, path: str) -> list[TextFile]:
        found = regular(path)
        file = _counted(path, found.st_size, found.st_mtime_ns, self.form, self.fields, self.cache)
        require_quiet(path, found)
        return [file]

    def _text(self, file: TextFile) -> str:
        """Where the file's text is, if it is still the file that was counted."""
        self._require_unchanged(file.entry())
        return text_of(file.path, self.cache)


@lru_cache(maxsize=1024)
def _counted(path: str, size: int, mtime: int, form: TextFormat, fields: tuple[Field, ...], cache: str) -> TextFile:
    """Read a file once; an app opens its sources several times, hence the cache."""
    text = text_of(path, cache)
    begin, final = head(text, HEAD)
    layout = form.layout(without_mark(begin, path), final, path, fields)
    digest = xxhash.xxh3_128()
    offset = len(BOM) if begin.startswith(BOM) else 0
    digest.update(begin[:offset])
    index = index_text(text, offset, layout.skip, form, digest.update)
    whole = file_digest(path) if packed(path) else digest.hexdigest()
    return TextFile(path, size, mtime, whole, layout.columns, index)


def without_mark(text: bytes, path: str) -> bytes:
    """A file's first bytes without the mark of UTF-8; other encodings are refused."""
    if text.startswith(WIDE):
        raise SourceError(f"'{path}' is UTF-16", "convert it to UTF-8: iconv -f UTF-16 -t UTF-8")
    return text.removeprefix(BOM)


def refuse_returns(text: bytes, path: str, quote: int = -1) -> None:
    """Lines that end in a carriage return alone would be one long record."""
    first = text.find(b"\r")
    quoted = quote >= 0 and text.count(quote, 0, max(first, 0)) % 2
    if first >= 0 and b"\n" not in text and not quoted:
        raise SourceError(
            f"the lines of '{path}' end in carriage returns alone",
            f"convert it: tr '\\r' '\\n' < {os.path.basename(path)} > converted{os.path.splitext(path)[1]}",
        )


def refuse_flags(fields: tuple[Field, ...], source: str) -> None:
    """Names that batches use for flags cannot be columns."""
    for column in fields:
        if column.name.startswith(BAD) or column.name in (FAULT, UNREADABLE):
            raise SourceError(f"column '{column.name}' of {source} has a name that is taken", "rename it")
