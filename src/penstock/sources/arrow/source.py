"""Arrow IPC files as a stream: rows are numbered over all files, in name order.

`sources.arrow.messages` finds the record batches of a file, in its file format (also Feather 2) and its stream format,
plain or with compressed buffers. A task maps the file into memory and takes the columns that it needs of the batches
that its split touches. `sources.counted` has the rest: which files there are, and which records are in which.

Delivery: files must not change while a run lasts. A task that meets another size or time compares the whole file.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.sources.arrow.messages import ERRORS, ArrowHead, ArrowIndex, index_batches, read_batches, read_head
from penstock.sources.arrow.taking import Taking, plain_text
from penstock.sources.base import START, arrow_field, fields
from penstock.sources.counted import file_digest, require_quiet
from penstock.sources.files import Address, in_short, regular, starts_of
from penstock.sources.fit import check_fields
from penstock.sources.flags import without_columns
from penstock.sources.live.picking import SkippingFiles
from penstock.sources.parquet.footers import first_line, require_equal_schema
from penstock.state.arrivals import FileEntry

Array = np.ndarray
SUFFIXES = (".arrow", ".arrows", ".feather", ".ipc")


@dataclass(frozen=True)
class ArrowFile:
    """A file whose records are counted. `mtime` is in nanoseconds, `digest` of the whole file."""

    path: str
    size: int
    mtime: int
    digest: str
    rows: int
    index: ArrowIndex

    def entry(self) -> FileEntry:
        index = self.index
        dictionaries = [list(piece) for piece in index.dictionaries]
        reading = {"index": list(index.rows), "places": list(index.places), "dictionaries": dictionaries}
        return FileEntry(self.path, self.rows, self.size, self.digest, self.mtime, reading)

    @classmethod
    def of(cls, entry: FileEntry) -> ArrowFile:
        reading = entry.reading
        pieces = tuple((begin, end) for begin, end in reading["dictionaries"])
        index = ArrowIndex(tuple(reading["index"]), tuple(reading["places"]), pieces)
        return cls(entry.path, entry.size, entry.mtime, entry.digest, entry.rows, index)


@dataclass(frozen=True)
class ArrowSource(SkippingFiles[ArrowFile]):
    """Files with equal schemas, one after the other. `head` is the first file's; None before there is one."""

    head: ArrowHead | None = field(kw_only=True)
    declared: tuple[Field, ...] | None = field(default=None, kw_only=True)

    def schema(self) -> pa.Schema:
        return pa.schema(map(arrow_field, self.fields)) if self.head is None else self.head.schema

    def fingerprint(self) -> str:
        return hashlib.blake2b(f"arrow {self.fields!r}".encode(), digest_size=16).hexdigest()

    def extended(self, entries: Sequence[FileEntry]) -> ArrowSource:
        longer = super().extended(entries)
        there = [entry for entry in entries if entry.path and self.changed(entry) is None]
        return replace(longer, head=read_head(there[0].path)) if self.head is None and there else longer

    def restarted(self, entries: Sequence[FileEntry]) -> ArrowSource:
        return replace(self, paths=(), known=(), first=START).extended(entries)

    def done(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        return in_short(entries, {"index": [], "places": [], "dictionaries": []})

    def _read(
        self, file: ArrowFile, start: int, stop: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        if not columns:
            yield from (without_columns(min(batch_rows, stop - at)) for at in range(start, stop, batch_rows))
            return
        self._require_unchanged(file.entry())
        starts = starts_of(file.index.rows, START)
        first = bisect_right(starts, start) - 1
        batches = _guarded(file, read_batches(file.path, file.index, range(first, len(starts) - 1), columns))
        for number, batch in enumerate(batches, first):
            begin, end = max(start, starts[number]), min(stop, starts[number + 1])
            for at in range(begin, end, batch_rows):
                yield _checked(file, batch.slice(at - starts[number], min(batch_rows, end - at)), columns)
            if end == stop:
                return

    def _read_rows(
        self, file: ArrowFile, rows: Array, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Batches that hold none of them are not even looked at; of a mapped one, only what is taken."""
        if not columns:
            yield from (without_columns(min(batch_rows, len(rows) - at)) for at in range(0, len(rows), batch_rows))
            return
        self._require_unchanged(file.entry())
        starts = starts_of(file.index.rows, START)
        edges = np.searchsorted(rows, starts)
        numbers = np.flatnonzero(np.diff(edges))  # of batches that hold some
        batches, taking = _guarded(file, read_batches(file.path, file.index, numbers.tolist(), columns)), Taking()
        for number in numbers.tolist():
            batch = next(batches, None)
            if batch is None:
                raise _damaged(file, EOFError(f"record batch {number} is missing"))
            for at in range(edges[number], edges[number + 1], batch_rows):
                wanted = rows[at : min(edges[number + 1], at + batch_rows)] - starts[number]
                yield _taken(file, batch, wanted, columns, taking)

    def _place(self, file: ArrowFile, row: int) -> str:
        return f"{self.address.name(file.path)}, row {row + 1}"

    def _of(self, entry: FileEntry) -> ArrowFile:
        return ArrowFile.of(entry)

    def _count(self, path: str) -> list[ArrowFile]:
        found = regular(path)
        head, file = _counted(path, found.st_size, found.st_mtime_ns)
        require_quiet(path, found)
        self._require_fit(head)
        return [file]

    def _require_fit(self, head: ArrowHead) -> None:
        if self.head is not None:
            require_equal_schema(self.head.schema, self.address.name(self.head.path), head)
        elif self.declared:
            check_fields(self.declared, head.schema, f"'{head.path}'")


def _guarded(file: ArrowFile, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except ERRORS as error:
        raise _damaged(file, error) from error


def _checked(file: ArrowFile, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """The columns in the order asked for. Arrow believes what a file says of places inside a column: a wrong one would
    end the process, so it is looked for first."""
    arrays = [batch.column(name) for name in columns]
    try:
        for array in arrays:
            array.validate(full=True)
        return pa.record_batch([_ingestible(array) for array in arrays], names=list(columns))
    except ERRORS as error:
        raise _damaged(file, error) from error


def _taken(
    file: ArrowFile, batch: pa.RecordBatch, rows: Array, columns: Sequence[str], taking: Taking
) -> pa.RecordBatch:
    indices = pa.array(rows)
    try:
        arrays = [taking.take(name, batch.column(name), rows, indices) for name in columns]
        return pa.record_batch([_ingestible(array) for array in arrays], names=list(columns))
    except ERRORS as error:
        raise _damaged(file, error) from error


def _ingestible(array: pa.Array) -> pa.Array:
    """What tasks take in: text as strings or as a dictionary of strings, everything else plain."""
    if pa.types.is_dictionary(array.type):
        text = pa.types.is_string(array.type.value_type) or pa.types.is_large_string(array.type.value_type)
        if text and not array.dictionary.null_count:
            return array
        array = array.dictionary_decode()
    return plain_text(array) if pa.types.is_string_view(array.type) else array


def _damaged(file: ArrowFile, error: BaseException) -> RunError:
    return RunError(f"cannot read '{file.path}': {first_line(error)}", "restore the file, or leave it out")


@lru_cache(maxsize=1024)
def _counted(path: str, size: int, mtime: int) -> tuple[ArrowHead, ArrowFile]:
    """Read a file once; an app opens its sources several times, hence the cache."""
    head, index = read_head(path), index_batches(path)
    return head, ArrowFile(path, size, mtime, file_digest(path), sum(index.rows), index)


def open_arrow(path: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> ArrowSource:
    """Open a file, a folder (its *.arrow, *.arrows, *.feather and *.ipc files) or a glob (`**` goes into folders)."""
    if options:
        raise SourceError(f"unknown option '{min(options)}'", "an arrow: source takes no options")
    address = Address.of("arrow", path, SUFFIXES)
    heads = [read_head(file) for file in address.required(bool(declared))]
    for head in heads[1:]:
        require_equal_schema(heads[0].schema, address.name(heads[0].path), head)
    first = heads[0] if heads else None
    meant = declared or fields(heads[0].schema)
    return ArrowSource(address, meant, "", tuple(head.path for head in heads), head=first, declared=declared)
