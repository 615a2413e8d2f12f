"""Arrow IPC files: which record batches they have, and how to reach one without those before it.

    file format      "ARROW1", messages, a footer that says where record batches are
    stream format    messages: the schema, then record batches, and dictionaries before the batches that use them

A file has either format, known by its first bytes. Of a stream, places of messages are noted when its records are
counted. A task that begins in the middle reads the schema, the dictionaries up to there, and goes on at its own batch.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc

from penstock.errors import SourceError
from penstock.sources.files import regular, unreadable
from penstock.sources.parquet.footers import first_line, plain_schema

MAGIC, FEATHER_1 = b"ARROW1", b"FEA1"
RESTORE = "it is damaged: restore it, or leave it out"
ERRORS = (pa.ArrowException, OSError, ValueError, EOFError, struct.error)  # of files that are damaged
HEADER, LENGTH = 2, 0  # fields of the flatbuffers Message and RecordBatch


@dataclass(frozen=True)
class ArrowIndex:
    """Rows of the record batches. Of the stream format also where each begins and the last ends, and where each
    dictionary begins and ends; the schema ends where the first of these begins."""

    rows: tuple[int, ...]
    places: tuple[int, ...] = ()
    dictionaries: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ArrowHead:
    """What is known of a file without its records."""

    path: str
    schema: pa.Schema


def read_head(path: str) -> ArrowHead:
    """Check that the file is of Arrow's, and take in its columns."""
    with _damage(path):
        schema = plain_schema(_open(path).schema)
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise SourceError(f"column '{twice[0]}' occurs twice in '{path}'", "columns need distinct names")
    return ArrowHead(path, schema)


def index_batches(path: str) -> ArrowIndex:
    """Count the records of a file, batch by batch."""
    with _damage(path):
        return _index_file(path) if _is_file(path) else _index_stream(path)


def read_batches(path: str, index: ArrowIndex, first: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The record batches of a file from this one on: these columns, in the order of the file."""
    names = _open(path).schema.names
    options = ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns], use_threads=False)
    if not index.places:
        reader = ipc.open_file(pa.memory_map(path), options=options)
        yield from map(reader.get_batch, range(first, len(index.rows)))
        return
    with open(path, "rb") as file:
        yield from ipc.open_stream(Pieces(file, _pieces(index, first)), options=options)


class Pieces(io.RawIOBase):
    """Some pieces [begin, end) of a file, as if they were one."""

    def __init__(self, file: io.BufferedReader, pieces: list[tuple[int, int]]) -> None:
        self._file, self._left = file, pieces[::-1]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        done, room = 0, memoryview(buffer).cast("B")
        while self._left and done < len(room):
            begin, end = self._left.pop()
            self._file.seek(begin)
            count = self._file.readinto(room[done : done + end - begin])
            done += count
            if not count:  # the file has become shorter
                break
            if begin + count < end:
                self._left.append((begin + count, end))
        return done


def _pieces(index: ArrowIndex, first: int) -> list[tuple[int, int]]:
    """Of the stream format: the schema, all dictionaries before a batch, and everything from it on."""
    schema = min((index.places[0], *(begin for begin, _ in index.dictionaries)))
    begun = index.places[first]
    return [(0, schema), *(piece for piece in index.dictionaries if piece[1] <= begun), (begun, index.places[-1])]


def _is_file(path: str) -> bool:
    size = regular(path).st_size
    try:
        with open(path, "rb") as file:
            begin = file.read(8)
            file.seek(max(0, size - len(MAGIC)))
            end = file.read()
    except OSError as error:
        raise unreadable(path, error) from error
    if begin.startswith(FEATHER_1):
        raise SourceError(f"'{path}' is a Feather file of version 1", "write it anew, as version 2")
    if begin.startswith(MAGIC):
        if end != MAGIC or size < 2 * len(MAGIC):
            raise SourceError(f"'{path}' was cut off: its {size} bytes do not end in a footer", RESTORE)
        return True
    if not begin.startswith(b"\xff\xff\xff\xff"):
        raise SourceError(
            f"'{path}' is not an Arrow IPC file: it begins neither as a file nor as a stream of Arrow's",
            "Parquet is read by parquet:, text by csv: and json:; what is compressed as a whole must be unpacked",
        )
    return False


def _open(path: str) -> Any:
    mapped = _is_file(path), pa.memory_map(path)
    return ipc.open_file(mapped[1]) if mapped[0] else ipc.open_stream(mapped[1])


def _index_file(path: str) -> ArrowIndex:
    """Only the narrowest column is decoded; of what is not compressed, nothing."""
    schema = ipc.open_file(pa.memory_map(path)).schema
    narrow = sorted(range(len(schema)), key=lambda number: _width(schema.field(number).type))[:1]
    reader = ipc.open_file(pa.memory_map(path), options=ipc.IpcReadOptions(included_fields=narrow, use_threads=False))
    return ArrowIndex(tuple(reader.get_batch(number).num_rows for number in range(reader.num_record_batches)))


def _width(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:  # not of a fixed width
        return 1 << 20


def _index_stream(path: str) -> ArrowIndex:
    rows, places, dictionaries = list[int](), list[int](), list[tuple[int, int]]()
    with pa.memory_map(path) as file:
        at = end = 0
        while True:
            try:
                message = ipc.read_message(file)
            except EOFError:
                break
            at, end = end, file.tell()
            if message.type == "record batch":
                rows.append(_length(message.metadata.to_pybytes()))
                places.append(at)
            elif message.type == "dictionary":
                dictionaries.append((at, end))
    return ArrowIndex(tuple(rows), (*places, end), tuple(dictionaries))


def _length(message: bytes) -> int:
    """Rows of a record batch, from the flatbuffer that describes it: no column is touched."""
    header = _field(message, _pointed(message, 0), HEADER)
    length = _field(message, _pointed(message, header), LENGTH)
    return int(struct.unpack_from("<q", message, length)[0]) if length else 0


def _pointed(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table stands; 0 if it has its default."""
    layout = table - int(struct.unpack_from("<i", data, table)[0])
    if 4 + 2 * number >= struct.unpack_from("<H", data, layout)[0]:
        return 0
    offset = int(struct.unpack_from("<H", data, layout + 4 + 2 * number)[0])
    return table + offset if offset else 0


@contextmanager
def _damage(path: str) -> Iterator[None]:
    try:
        yield
    except ERRORS as error:
        raise SourceError(f"cannot read '{path}': {first_line(error)}", RESTORE) from error
