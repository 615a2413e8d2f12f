"""Tables that records are joined with: a bounded source, read once and whole, in a form that no file format shows in.

    CREATE TABLE t (…) FROM 'csv:t.csv' ──► read_table (values checked, digest) ──► StoredTable
    a run starts                        ──► keep_table: CHECKPOINT/tables/DIGEST.arrow ──► load_table, in tasks

| type | stored as |
| --- | --- |
| integers | int64 |
| DOUBLE | float64; all NaNs are one |
| BOOLEAN | bool |
| TIMESTAMP | timestamp[us, UTC] |
| STRING | string |
| INET | string, as RFC 5952 prints it, marked as INET |

Equal rows give an equal digest, whether they came from text, Parquet or memory. A stream may have records that cannot
be read; a table may not, because nobody would miss the rows that it lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from penstock.errors import SourceError, StateError
from penstock.kernels import inet
from penstock.logical.query import Field
from penstock.logical.types import Kind
from penstock.sources.arrow.kept import BATCH_ROWS, content_digest, keep, kept, place_of
from penstock.sources.base import ADDRESS, BAD, FAULT, START, UNREADABLE, Position, Source, arrow_field, whole
from penstock.sources.base import fields as source_fields
from penstock.sources.decimals import float_decimals
from penstock.sources.fit import check_fields
from penstock.sources.texts import text_bytes

RESTORE = "restore the checkpoint from a copy, or start anew with an empty one"
NANOSECONDS = 1000  # in a microsecond


@dataclass(frozen=True)
class StoredTable:
    """A table's columns, and what they hold."""

    fields: tuple[Field, ...]
    digest: str
    data: pa.Table = field(repr=False, compare=False)


def read_table(source: Source, fields: tuple[Field, ...] | None, name: str) -> StoredTable:
    """All records of a source as the rows of table `name`: these columns, or all that the source knows."""
    if source.abilities.live:
        raise SourceError(
            f"table '{name}' cannot be a replay: tables are read at once, and whole",
            "name the source itself, without replay: and speed",
        )
    meant = tuple(source_fields(source.schema()) if fields is None else fields)
    check_fields(meant, source.schema(), f"table '{name}'")
    schema, pieces, at = pa.schema(map(stored_field, meant)), list[pa.RecordBatch](), START
    for batch in source.read(whole(source), [one.name for one in meant], BATCH_ROWS):
        pieces.append(_stored(batch, meant, schema, source, at, name))
        at = Position(at + batch.num_rows)
    if at == START:
        raise SourceError(
            f"table '{name}' is empty", "no record would find a row in it: see that it names the right file"
        )
    data = pa.Table.from_batches(pieces, schema).combine_chunks()
    for column in meant:
        if data[column.name].num_chunks > 1:
            raise SourceError(
                f"table '{name}' is too large: column '{column.name}' has more than 2 GiB of text",
                "declare only the columns that queries need",
            )
    return StoredTable(meant, content_digest(data), data)


def refreshed_identity(name: str, fields: tuple[Field, ...]) -> str:
    """How expressions know a table that is read again: content comes and goes, its name and columns stay."""
    return "refreshed-" + xxhash.xxh3_128_hexdigest(repr((name, fields)).encode())


def keep_table(checkpoint: Path, table: StoredTable) -> None:
    """Have the checkpoint keep a table; its content is written once."""
    keep(checkpoint, table.data, table.digest)


def load_table(checkpoint: Path, digest: str) -> pa.Table:
    """A table that the checkpoint keeps."""
    path = place_of(checkpoint, digest)
    table = kept(path, digest)
    if table is None:
        raise StateError(f"the checkpoint's table {path} is {'damaged' if path.exists() else 'missing'}", RESTORE)
    return table.combine_chunks()


def stored_field(field: Field) -> pa.Field:
    """How a column is stored."""
    told = arrow_field(field)
    return told.with_type(pa.int64()) if field.type.kind is Kind.INTEGER else told


# -- one batch


def _stored(
    batch: pa.RecordBatch, fields: tuple[Field, ...], schema: pa.Schema, source: Source, at: Position, name: str
) -> pa.RecordBatch:
    """A batch as it is stored; a SourceError that names its first record with a value that does not fit."""
    wrong, arrays = _unreadable(batch), list[pa.Array]()
    column: Field | None
    for column in fields:
        array = _plain(batch.column(column.name))
        given = array.slice(0, _first(batch, BAD + column.name)) if BAD + column.name in batch.schema.names else array
        if len(given) < len(array):
            wrong.append((len(given), f"its {column.name} is not a valid {column.type}", column))
        stored = _converted(given, column)
        if len(stored) < len(given):
            shown = _shown(given.slice(len(stored), 1))
            wrong.append((len(stored), f"its {column.name}{shown} is not a valid {column.type}", column))
        arrays.append(stored)
    if not wrong:
        return pa.record_batch(arrays, schema=schema)
    row, reason, column = min(wrong, key=lambda found: found[0])
    told = batch.column(FAULT)[row].as_py() if FAULT in batch.schema.names else None
    place = source.place(Position(at + row))
    hint = "" if column is None else f", or declare another type: {column.name} STRING"
    raise SourceError(f"table '{name}' cannot be read at {place}: {told or reason}", f"correct the record{hint}")


def _unreadable(batch: pa.RecordBatch) -> list[tuple[int, str, Field | None]]:
    """The first record of which nothing could be read, and why."""
    if UNREADABLE not in batch.schema.names:
        return []
    reasons = batch.column(UNREADABLE)
    row = _true(reasons.is_valid())
    return [] if row == len(batch) else [(row, reasons[row].as_py(), None)]


def _first(batch: pa.RecordBatch, flag: str) -> int:
    return _true(batch.column(flag))


def _true(flags: pa.Array) -> int:
    """Where the first flag is set; their number, if none is."""
    found = np.flatnonzero(flags.to_numpy(zero_copy_only=False))
    return int(found[0]) if len(found) else len(flags)


def _shown(array: pa.Array) -> str:
    """A value, as far as it can be shown: a time beyond the calendar cannot."""
    text = array.type in (pa.string(), pa.large_string())
    return f" {array[0].as_py()!r:.60}" if text or pa.types.is_integer(array.type) else ""


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _converted(array: pa.Array, field: Field) -> pa.Array:
    """The values as they are stored, up to the first that does not fit."""
    match field.type.kind:
        case Kind.INET:
            return _addresses(array)
        case Kind.DOUBLE:
            return _doubles(array)
        case Kind.TIMESTAMP:
            return _fitting(array, _times)
        case Kind.INTEGER:
            narrow = arrow_field(field).type
            return _fitting(array, lambda part: part.cast(narrow).cast(pa.int64()))
        case Kind.BOOLEAN:
            return array
    return array.cast(pa.string())


def _fitting(array: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """As many values as fit, found by halves."""
    try:
        return convert(array)
    except pa.ArrowInvalid:
        fits, beyond = 0, len(array)
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        try:
            convert(array.slice(fits, middle - fits))
            fits = middle
        except pa.ArrowInvalid:
            beyond = middle
    return convert(array.slice(0, fits))


def _times(array: pa.Array) -> pa.Array:
    if pa.types.is_date64(array.type):
        array = array.cast(pa.int64()).cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":  # down to the microsecond, as of records
        counts = array.cast(pa.int64())
        low = pc.divide(counts, NANOSECONDS)
        below = pc.less(counts, pc.multiply(low, NANOSECONDS))
        array = pc.subtract(low, below.cast(pa.int64()))
    return array.cast(pa.timestamp("us", tz="UTC"))


def _doubles(array: pa.Array) -> pa.Array:
    """As records' are, value by value; NaNs differ in bits that mean nothing."""
    if pa.types.is_decimal(array.type):
        floats = pa.array(float_decimals(array), mask=array.is_null().to_numpy(zero_copy_only=False))
    else:
        floats = array.cast(pa.float64(), safe=False)
    return pc.if_else(pc.is_nan(floats), np.nan, floats)


def _addresses(array: pa.Array) -> pa.Array:
    """Printed addresses of numbers, of numbers beside bytes, or of text."""
    there = array.is_valid().to_numpy(zero_copy_only=False)
    if array.type == ADDRESS:
        version, high, low = _parts(array)
    elif pa.types.is_integer(array.type):
        numbers = pc.fill_null(array, 0)
        signed = pa.types.is_signed_integer(array.type)
        low = numbers.to_numpy().astype(np.int64 if signed else np.uint64).view(np.uint64)
        version, high = np.where(low >> np.uint64(32) == 0, 4, 0).astype(np.uint8), np.zeros_like(low)
    else:
        version, high, low = inet.parse(*text_bytes(pc.fill_null(array, "::")))
    end = _true(pa.array((version == 0) & there))
    start, data = inet.to_text(version[:end], high[:end], low[:end])
    buffers = [None, pa.py_buffer(start.astype(np.int32)), pa.py_buffer(data)]
    printed = pa.Array.from_buffers(pa.string(), end, buffers)
    return pc.if_else(pa.array(there[:end]), printed, None)


def _parts(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(version, high, low) of IPv4 numbers, and bytes of IPv6 addresses."""
    four, six = array.flatten()
    long = six.is_valid().to_numpy(zero_copy_only=False)
    whole = b"".join(six.drop_null().to_pylist())
    version, high = np.where(long, 6, 4).astype(np.uint8), np.zeros(len(array), np.uint64)
    low = pc.fill_null(four, 0).to_numpy().astype(np.uint64)
    high[long], low[long] = inet.from_network_order(np.frombuffer(whole, np.uint8))
    return version, high, low
