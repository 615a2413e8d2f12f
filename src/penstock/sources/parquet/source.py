"""Parquet files as a stream: rows are numbered over all files, in name order.

`sources.parquet.footers` reads the footers when the source is opened. A task then decodes only the row groups that its
split touches, in bounded pieces. A row group is the smallest piece that can be reached without decoding what stands
before it. So `cut` prefers the edges of row groups, and `splits` uses them where tasks stay of the same size.

All files have the columns of the first one. A source that is opened before its first file has the declared columns; the
types of its batches are those of the files, which `sources.fit` accepts.

Delivery: files must not change while a run lasts; a changed footer is noticed when the file is opened again.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.sources.base import OF_FILES, START, Abilities, Position, Split, arrow_field, fields
from penstock.sources.boundaries import cut_at_boundary, split_at_boundaries
from penstock.sources.files import Address, arrived, files_at, in_short, starts_of
from penstock.sources.fit import check_fields
from penstock.sources.live.picking import between, gathered, taken
from penstock.sources.parquet.footers import Footer, first_line, footer_digest, read_footer, require_equal_schema
from penstock.state.arrivals import FileEntry
from penstock.triage.picks import Picks


@dataclass(frozen=True)
class GroupedFile:
    """Where it is, its size and digest, and the row counts of its row groups."""

    path: str
    size: int
    digest: str
    groups: tuple[int, ...]

    def entry(self) -> FileEntry:
        return FileEntry(self.path, sum(self.groups), self.size, self.digest, 0, {"groups": list(self.groups)})

    @classmethod
    def of(cls, entry: FileEntry) -> GroupedFile:
        return cls(entry.path, entry.size, entry.digest, tuple(entry.reading["groups"]))


@dataclass(frozen=True)
class GroupPart:
    """Rows [skip, skip + take) of one row group, which begin at position `at` of the stream."""

    file: GroupedFile
    group: int
    skip: int
    take: int
    at: int


@dataclass(frozen=True)
class ParquetSource:
    """Files with equal schemas, one after the other."""

    abilities: ClassVar[Abilities] = OF_FILES
    address: Address
    files: tuple[GroupedFile, ...]
    columns: pa.Schema
    declared: tuple[Field, ...] | None = None
    first: Position = START  # of the first file's first row; not the start where files before it were left out

    def schema(self) -> pa.Schema:
        return self.columns

    def rows(self) -> Position:
        return self._edges[-1]

    def cut(self, start: Position, limit: int) -> Position:
        return cut_at_boundary(start, limit, self.rows(), lambda at: self._edges[bisect_right(self._edges, at) - 1])

    def splits(self, start: Position, stop: Position, parallelism: int) -> list[Split]:
        return split_at_boundaries(start, stop, parallelism, self._nearest)

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        for reader, piece in self._opened(self._pieces(split), columns):
            yield from _read_piece(reader, piece, columns, batch_rows)

    def read_picks(
        self, split: Split, columns: Sequence[str], batch_rows: int, picks: Picks
    ) -> Iterator[pa.RecordBatch]:
        return gathered(self._read_picks(split, columns, batch_rows, picks), batch_rows)

    def _read_picks(
        self, split: Split, columns: Sequence[str], batch_rows: int, picks: Picks
    ) -> Iterator[pa.RecordBatch]:
        """Row groups without picks are passed over; of the others what stands behind the last is."""
        rows = picks.rows(split.start, split.stop)
        wanted = ((piece, between(rows, piece.at, piece.at + piece.take)) for piece in self._pieces(split))
        held = (replace(piece, take=int(found[-1]) + 1) for piece, found in wanted if len(found))
        for reader, piece in self._opened(held, columns):
            at = piece.at
            for batch in _read_piece(reader, piece, columns, batch_rows):
                found = between(rows, at, at + batch.num_rows)
                at += batch.num_rows
                if len(found):
                    yield taken(batch, found)

    def _opened(
        self, pieces: Iterable[GroupPart], columns: Sequence[str]
    ) -> Iterator[tuple[pq.ParquetFile, GroupPart]]:
        """Pieces, each with a reader of its file."""
        open_path, reader = "", None
        try:
            for piece in pieces:
                if reader is None or piece.file.path != open_path:
                    if reader is not None:
                        reader.close()
                    reader, open_path = self._open(piece.file, columns), piece.file.path
                yield reader, piece
        finally:
            if reader is not None:
                reader.close()

    def place(self, at: Position) -> str:
        file = bisect_right(self._starts, at) - 1
        return f"{self.address.name(self.files[file].path)}, row {at - self._starts[file] + 1}"

    def narrowed(self, split: Split) -> ParquetSource:
        held, first = files_at(self._starts, split)
        return replace(self, files=self.files[held], first=first)

    def fingerprint(self) -> str:
        meaning = self.declared or fields(self.columns)
        return hashlib.blake2b(f"parquet {meaning!r}".encode(), digest_size=16).hexdigest()

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        return tuple(file.entry() for file in self.files)

    def arrivals(self) -> list[FileEntry]:
        known = {file.path for file in self.files}
        source, found = self, []
        for path in self.address.matching():
            footer = arrived(path, read_footer) if path not in known else None
            if footer is not None:
                found.append(_file(footer).entry())
                source = source._joined(footer)
        return found

    def extended(self, entries: Sequence[FileEntry]) -> ParquetSource:
        columns = self.columns
        if not self.files and entries and self.changed(entries[0]) is None:
            columns = read_footer(entries[0].path).schema
        return replace(self, files=(*self.files, *map(GroupedFile.of, entries)), columns=columns)

    def restarted(self, entries: Sequence[FileEntry]) -> ParquetSource:
        return replace(self, files=(), first=START).extended(entries)

    def done(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        gone, *kept = in_short(entries, {"groups": []})
        return [replace(gone, reading={"groups": [gone.rows]}), *kept]

    def live(self) -> ParquetSource:
        return self

    def changed(self, entry: FileEntry) -> str | None:
        if not os.path.exists(entry.path):
            return "is missing"
        try:
            same = footer_digest(entry.path) == (entry.size, entry.digest)
        except SourceError:
            same = False
        return None if same else "has changed"

    def _joined(self, footer: Footer) -> ParquetSource:
        """The source with a file that just came, if it fits."""
        try:
            if self.files:
                require_equal_schema(self.columns, self.address.name(self.files[0].path), footer)
            elif self.declared:
                check_fields(self.declared, footer.schema, f"'{footer.path}'")
        except SourceError as error:
            raise RunError(error.fact, error.hint) from error
        return replace(self, files=(*self.files, _file(footer)), columns=footer.schema)

    @cached_property
    def _starts(self) -> list[Position]:
        """Where files start, and the end of the stream last."""
        return starts_of((sum(file.groups) for file in self.files), self.first)

    @cached_property
    def _edges(self) -> list[Position]:
        """Where row groups start, and the end of the stream last; empty groups repeat one."""
        return starts_of((rows for file in self.files for rows in file.groups), self.first)

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """(file, row group within it) of the row group that starts at the same place of `_edges`."""
        return [(f, g) for f, file in enumerate(self.files) for g in range(len(file.groups))]

    def _nearest(self, at: Position) -> Position:
        near = bisect_left(self._edges, at)
        return min(self._edges[max(0, near - 1) : near + 1], key=lambda boundary: abs(boundary - at))

    def _pieces(self, split: Split) -> Iterator[GroupPart]:
        at = bisect_right(self._edges, split.start) - 1
        while at < len(self._places) and self._edges[at] < split.stop:
            begin, end = max(split.start, self._edges[at]), min(split.stop, self._edges[at + 1])
            if end > begin:
                file, group = self._places[at]
                yield GroupPart(self.files[file], group, begin - self._edges[at], end - begin, begin)
            at += 1

    def _open(self, file: GroupedFile, columns: Sequence[str]) -> pq.ParquetFile:
        text = [name for name in columns if self.columns.field(name).type == pa.string()]
        try:
            reader = pq.ParquetFile(file.path, memory_map=True, pre_buffer=False, read_dictionary=text)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RunError(f"cannot open '{file.path}': {first_line(error)}", "was it moved or changed?") from error
        groups = tuple(reader.metadata.row_group(i).num_rows for i in range(reader.metadata.num_row_groups))
        if groups != file.groups:
            reader.close()
            raise RunError(f"'{file.path}' has changed since the run began", "start again with a new checkpoint")
        return reader


def _read_piece(
    reader: pq.ParquetFile, piece: GroupPart, columns: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    skip, take = piece.skip, piece.take
    # Parquet readers cannot seek inside a row group: rows before `skip` are decoded, batch by batch, and dropped.
    batches = reader.iter_batches(batch_rows, row_groups=[piece.group], columns=list(columns), use_threads=False)
    while take > 0:
        try:
            batch = next(batches)
        except StopIteration:
            raise RunError(_damaged(piece, f"{take} rows are missing"), "restore the file") from None
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RunError(_damaged(piece, first_line(error)), "restore the file, or leave it out") from error
        part = batch.slice(skip, take)
        skip = max(0, skip - batch.num_rows)
        if part.num_rows:
            take -= part.num_rows
            yield part.select(list(columns))


def _damaged(piece: GroupPart, fact: str) -> str:
    return f"cannot read row group {piece.group} of '{piece.file.path}': {fact}"


def _file(footer: Footer) -> GroupedFile:
    return GroupedFile(footer.path, footer.size, footer.digest, footer.groups)


def open_parquet(path: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> ParquetSource:
    """Open a file, a folder (its *.parquet files) or a glob (`**` goes into folders)."""
    if options:
        raise SourceError(f"unknown option '{min(options)}'", "a parquet: source takes no options")
    address = Address.of("parquet", path, (".parquet",))
    footers = [read_footer(file) for file in address.required(bool(declared))]
    for footer in footers[1:]:
        require_equal_schema(footers[0].schema, address.name(footers[0].path), footer)
    columns = footers[0].schema if footers else pa.schema(map(arrow_field, declared or ()))
    return ParquetSource(address, tuple(map(_file, footers)), columns, declared)
