"""Arrow IPC files: which record batches they have, and how to reach one without those before it.

    file format      "ARROW1", messages, a footer that says where record batches are
    stream format    messages: the schema, then record batches, and dictionaries before the batches that use them

A file has either format, known by its first bytes. Of a stream, places of messages are noted when its records are
counted. A task that begins in the middle reads the schema, the dictionaries up to there, and goes on at its own batch.
"""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_right
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
FILE_START = 8  # of the messages in a file: after the magic, which is filled up
HEADER, LENGTH, COMPRESSION = 2, 0, 3  # fields of the flatbuffers Message and RecordBatch


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


def read_batches(
    path: str, index: ArrowIndex, numbers: Sequence[int], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """These record batches of a file, by ascending number; they have these columns, among others maybe.

    What is not compressed is not read here: its columns are where the file is mapped into memory. Arrow copies them
    where some are left out, so there all are taken along.
    """
    if not numbers:
        return
    names, data = _open(path).schema.names, _mapped(path)
    wanted = [names.index(name) for name in columns]
    yield from _batches(data, index, numbers, wanted if _compressed(data, index) else None)


def _mapped(path: str) -> pa.Buffer:
    with open(path, "rb") as file:
        return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _compressed(data: pa.Buffer, index: ArrowIndex) -> bool:
    """Whether the first record batch is: a file is written in one way."""
    messages = pa.BufferReader(data.slice(index.places[0] if index.places else FILE_START))
    while (message := ipc.read_message(messages)).type != "record batch":
        pass
    described = message.metadata.to_pybytes()
    return _field(described, _header(described), COMPRESSION) != 0


def _batches(
    data: pa.Buffer, index: ArrowIndex, numbers: Sequence[int], wanted: list[int] | None
) -> Iterator[pa.RecordBatch]:
    options = ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
    if index.places:
        pieces = pa.PythonFile(Pieces(data, _pieces(index, numbers)), "r")
        yield from ipc.open_stream(pieces, options=options)
    else:
        yield from map(ipc.open_file(pa.BufferReader(data), options=options).get_batch, numbers)


class Pieces:
    """Some pieces [begin, end) of a file's bytes, as if they were one. A message never goes beyond its piece."""

    closed = False  # asked by Arrow

    def __init__(self, data: pa.Buffer, pieces: list[tuple[int, int]]) -> None:
        self._data, self._left = data, pieces[::-1]

    def read_buffer(self, size: int) -> pa.Buffer:
        """The bytes themselves, not a copy."""
        begin, end = self._left.pop() if self._left else (0, 0)
        found = self._data.slice(min(begin, self._data.size), min(size, end - begin))
        if begin + found.size < end and found.size:
            self._left.append((begin + found.size, end))
        return found

    def read(self, size: int) -> bytes:
        """The same, where Arrow asks for bytes."""
        return bytes(self.read_buffer(size).to_pybytes())

    def close(self) -> None:
        self._left = []


def _pieces(index: ArrowIndex, numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Of the stream format: the schema, these record batches, and all dictionaries before the last of them."""
    begins = sorted([*index.places, *(begin for begin, _ in index.dictionaries)])
    batches = [(at, begins[bisect_right(begins, at)]) for at in map(index.places.__getitem__, numbers)]
    dictionaries = (piece for piece in index.dictionaries if piece[0] < batches[-1][0])
    return [(0, begins[0]), *sorted([*dictionaries, *batches])]


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
    length = _field(message, _header(message), LENGTH)
    return int(struct.unpack_from("<q", message, length)[0]) if length else 0


def _header(message: bytes) -> int:
    """Where the table stands that describes a record batch."""
    return _pointed(message, _field(message, _pointed(message, 0), HEADER))


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
