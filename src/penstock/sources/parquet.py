"""Parquet files as a stream: the row number over all files, in name order, is the position.

Footers are read by `sources.parquet_files` when the source is opened; a task then decodes only the row groups
its split touches, in bounded pieces.  Row groups are the unit that can be reached without decoding what lies
before it, so `cut` and `splits` prefer their boundaries wherever that keeps batches and tasks of similar size.

Delivery: files must not change while a run lasts; a changed footer is noticed when the file is opened again.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import RunError, SourceError
from penstock.sources.base import Split
from penstock.sources.boundaries import cut_at_boundary, split_at_boundaries
from penstock.sources.parquet_files import find_files, first_line, read_footer, require_equal_schemas


@dataclass(frozen=True)
class File:
    """Where it is, and the row counts of its row groups."""

    path: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Piece:
    """Rows [skip, skip + take) of one row group."""

    file: File
    group: int
    skip: int
    take: int


@dataclass(frozen=True)
class ParquetSource:
    """Files with equal schemas, one after the other."""

    files: tuple[File, ...]
    columns: pa.Schema
    digest: str

    def schema(self) -> pa.Schema:
        return self.columns

    def rows(self) -> int:
        return self._edges[-1]

    def cut(self, start: int, limit: int) -> int:
        return cut_at_boundary(start, limit, self.rows(), lambda row: self._edges[bisect_right(self._edges, row) - 1])

    def splits(self, start: int, stop: int, parallelism: int) -> list[Split]:
        return split_at_boundaries(start, stop, parallelism, self._nearest)

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        open_path, reader = "", None
        try:
            for piece in self._pieces(split):
                if reader is None or piece.file.path != open_path:
                    if reader is not None:
                        reader.close()
                    reader, open_path = self._open(piece.file, columns), piece.file.path
                yield from _read_piece(reader, piece, columns, batch_rows)
        finally:
            if reader is not None:
                reader.close()

    def fingerprint(self) -> str:
        return self.digest

    @cached_property
    def _edges(self) -> list[int]:
        """Row numbers at which row groups start, and the end of the stream last; empty groups repeat one."""
        return list(accumulate((rows for file in self.files for rows in file.groups), initial=0))

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """(file, row group within it) of the row group that starts at the same place of `_edges`."""
        return [(f, g) for f, file in enumerate(self.files) for g in range(len(file.groups))]

    def _nearest(self, row: int) -> int:
        at = bisect_left(self._edges, row)
        return min(self._edges[max(0, at - 1) : at + 1], key=lambda boundary: abs(boundary - row))

    def _pieces(self, split: Split) -> Iterator[Piece]:
        at = bisect_right(self._edges, split.start) - 1
        while at < len(self._places) and self._edges[at] < split.stop:
            begin, end = max(split.start, self._edges[at]), min(split.stop, self._edges[at + 1])
            if end > begin:
                file, group = self._places[at]
                yield Piece(self.files[file], group, begin - self._edges[at], end - begin)
            at += 1

    def _open(self, file: File, columns: Sequence[str]) -> pq.ParquetFile:
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
    reader: pq.ParquetFile, piece: Piece, columns: Sequence[str], batch_rows: int
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


def _damaged(piece: Piece, fact: str) -> str:
    return f"cannot read row group {piece.group} of '{piece.file.path}': {fact}"


def open_parquet(path: str, options: Mapping[str, str]) -> ParquetSource:
    """Open a file, a folder (its *.parquet files) or a glob (`**` goes into folders)."""
    if options:
        raise SourceError(f"unknown option '{min(options)}'", "a parquet: source takes no options")
    footers = [read_footer(file) for file in find_files(path)]
    require_equal_schemas(footers)
    digest = hashlib.blake2b("\n".join(footer.digest for footer in footers).encode(), digest_size=16).hexdigest()
    files = tuple(File(footer.path, footer.groups) for footer in footers)
    return ParquetSource(files, footers[0].schema, digest)
