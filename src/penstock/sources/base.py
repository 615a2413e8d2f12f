"""The contract of a source, and what its Arrow types mean.

A source is a sequence of records in stream order. A `Position` is a place between two records: offsets log it, callers
hand it back and compare it, and know nothing else about it. Today all sources count records: it is a row number.

    open_source(uri, options, declared) ──► Source ──► cut (micro-batch) ──► splits (tasks) ──► read (Arrow batches)
                                    arrivals ──► extended (more files, read after those that are there)

`cut` and `splits` run in the driver's source process and must be deterministic; `read` runs in a task. What a source
can do beyond that it declares as data (`Abilities`). To add a source: write one module with a class of this shape, and
add its scheme in `sources.registry`.

A batch may have more columns than were asked, only where they say something (`sources.flags` adds them). `BAD + name`
(boolean, no NULLs) is true where a record has a value for the asked column `name` that does not fit its type; the value
is NULL then. `FAULT` (text) says, of records with such values, why, where the source knows better than the engine; NULL
of others. `UNREADABLE` (text) says why nothing could be read of a record, else NULL; all its asked columns are bad.
Which records are unreadable does not depend on the columns asked.

Delivery: a source can be read again from any position, therefore the engine on top of it can promise exactly once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NewType, Protocol, TypeGuard

import pyarrow as pa

from penstock.logical.query import Field, SourceFields
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, Kind, Type
from penstock.state.arrivals import FileEntry

TYPE_KEY = b"penstock.type"  # field metadata: b"INET" marks integers or text that are addresses
BAD = "bad:"
FAULT = "fault:"
UNREADABLE = "unreadable:"
# Addresses as numbers: an IPv4 address, or where it is not NULL the bytes of an IPv6 address.
ADDRESS = pa.struct([pa.field("four", pa.uint32()), pa.field("six", pa.binary(16))])
WRONG_FIELDS, OPEN_QUOTE, NOT_JSON = "wrong number of fields", "quote not closed", "not JSON"
NOT_OBJECT, NOT_UTF8, TOO_LONG = "not a JSON object", "not UTF-8", "record too long"
# Of text. A reason's number, in kernels, is its place; 0 is readable.
REASONS = (None, WRONG_FIELDS, OPEN_QUOTE, NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_LONG)

# Any number of so many digits fits a BIGINT; decimals of so many are 128 bits wide.
BIGINT_DIGITS, DECIMAL_DIGITS = 18, 38

Position = NewType("Position", int)
START = Position(0)


@dataclass(frozen=True)
class Abilities:
    """What a stream of records can do, beside being read from its start to its end."""

    random_access: bool  # any rows can be read without those before: tasks share a batch, samples come from all over it
    rows_in_order: bool  # each record has a number in the stream: there may be windows of rows
    grows: bool  # files may be added while a run lasts: it is a `GrowingSource`
    live: bool = False  # records arrive by the clock: it is a `LiveSource`


OF_FILES = Abilities(random_access=True, rows_in_order=True, grows=True)
# DataFrames of the user's are no sources of ours, but the same is asked of them.
OF_FRAMES = Abilities(random_access=False, rows_in_order=False, grows=False)


@dataclass(frozen=True)
class Split:
    """What one task reads: records [start, stop) in stream order."""

    start: Position
    stop: Position


class Source(Protocol):
    """A stream that can be read again. Instances are pickled to tasks: keep them small, open files lazily."""

    @property
    def abilities(self) -> Abilities:
        """What the source can; known without a look at its files."""
        ...

    def schema(self) -> pa.Schema:
        """Arrow schema of what `read` yields for all columns."""
        ...

    def rows(self) -> Position:
        """Where the stream ends, which is the number of its records."""
        ...

    def cut(self, start: Position, limit: int) -> Position:
        """End of the micro-batch that starts at `start` and has at most `limit` records (at least one)."""
        ...

    def splits(self, start: Position, stop: Position, parallelism: int) -> list[Split]:
        """Cover records [start, stop) by about `parallelism` splits of similar size, in order."""
        ...

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the split's records in order, these columns in this order, at most `batch_rows` at a time."""
        ...

    def place(self, at: Position) -> str:
        """Where a record stands, for messages: `flows.csv, record 17, byte 1234`; records count from 1."""
        ...

    def narrowed(self, split: Split) -> Source:
        """A source that can read this split, at the same positions, and carries no more than that needs."""
        ...

    def fingerprint(self) -> str:
        """Changes when what the stream means changes (recipe, options, columns): a checkpoint refuses to go on then.

        Of growing sources it does not cover the files; those have their own digests in `GrowingSource.entries`.
        """
        ...


class GrowingSource(Source, Protocol):
    """Files that match an address, in the order in which they were met; more may come while a run lasts."""

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        """The files of the stream, in stream order."""
        ...

    def arrivals(self) -> list[FileEntry]:
        """New parts of the files that are there, and files that match the address now, in name order.

        Names of files still being written (see `sources.files.unfinished`) and files that vanish meanwhile are passed
        over; one that cannot be read is a RunError with its name.
        """
        ...

    def extended(self, entries: Sequence[FileEntry]) -> GrowingSource:
        """The source with these files after those it has."""
        ...

    def restarted(self, entries: Sequence[FileEntry]) -> GrowingSource:
        """The source with exactly these files, as a log remembers them."""
        ...

    def changed(self, entry: FileEntry) -> str | None:
        """None if the file is what the entry says, else `is missing` or `has changed`."""
        ...

    def done(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        """These files, which have been read, in short: an entry without a path that stands for their rows, and one
        without rows for each file that is still there and must not be taken for a new one."""
        ...

    def live(self) -> GrowingSource:
        """The source for a run that goes on: what is unfinished at the end of a file may be finished later."""
        ...


def growing(source: Source) -> TypeGuard[GrowingSource]:
    """Whether files may be added to the source."""
    return source.abilities.grows


class HeldSource(Source, Protocol):
    """What this process holds in memory: no task can read it, and no later run would find it."""

    def kept(self, checkpoint: Path) -> Source:
        """The same records, as a checkpoint keeps them."""
        ...


def held(source: Source) -> TypeGuard[HeldSource]:
    return hasattr(source, "kept")


def kept_sources(checkpoint: Path, sources: Mapping[str, Source]) -> dict[str, Source]:
    """Sources as tasks may read them: what is held in memory as the checkpoint keeps it, all others as they are."""
    return {name: source.kept(checkpoint) if held(source) else source for name, source in sources.items()}


def whole(source: Source) -> Split:
    """All records of a source."""
    return Split(START, source.rows())


def even_splits(start: Position, stop: Position, parallelism: int) -> list[Split]:
    """Cut records [start, stop) into at most `parallelism` non-empty ranges of nearly equal size.

    >>> even_splits(0, 5, 2)
    [Split(start=0, stop=2), Split(start=2, stop=5)]
    """
    count = max(1, min(parallelism, stop - start))
    edges = [Position(start + (stop - start) * i // count) for i in range(count + 1)]
    return [Split(a, b) for a, b in itertools.pairwise(edges) if b > a]


def logical_type(field: pa.Field) -> Type | None:
    """The engine's type of an Arrow field; None where the engine cannot use it."""
    if (field.metadata or {}).get(TYPE_KEY) == b"INET":
        return INET
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_boolean(kind):
        return BOOLEAN
    if pa.types.is_integer(kind):
        # An unsigned integer needs the next wider signed type; uint64 beyond BIGINT is malformed per record.
        bits = kind.bit_width * (2 if pa.types.is_unsigned_integer(kind) else 1)
        return {8: TINYINT, 16: SMALLINT, 32: INT}.get(bits, BIGINT)
    if pa.types.is_floating(kind) and kind.bit_width >= 32:
        return DOUBLE
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):  # a date is its midnight
        return TIMESTAMP
    if pa.types.is_decimal(kind):
        return BIGINT if whole_decimal(kind) and kind.precision <= BIGINT_DIGITS else DOUBLE
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return STRING
    return None


def whole_decimal(kind: pa.DataType) -> bool:
    """Whether values of a type are decimals that can be read as integers."""
    return bool(pa.types.is_decimal(kind)) and kind.scale == 0 and kind.precision <= DECIMAL_DIGITS


def fields(schema: pa.Schema) -> SourceFields:
    """The columns of a source, for a stream declared without a schema."""
    typed = [(field, logical_type(field)) for field in schema]
    usable = (Field(field.name, kind) for field, kind in typed if kind is not None)
    unread = ((field.name, told_type(field.type)) for field, kind in typed if kind is None)
    return SourceFields(usable, unread, (field.name for field in schema if pa.types.is_date(field.type)))


def told_type(kind: pa.DataType) -> str:
    """An Arrow type as people write it.

    >>> told_type(pa.list_(pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.time64("us"))])))
    'list<struct<a: int32, b: time64[us]>>'
    """
    if pa.types.is_map(kind):
        return f"map<{told_type(kind.key_type)}, {told_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{part.name}: {told_type(part.type)}' for part in kind)}>"
    return f"list<{told_type(kind.value_type)}>" if hasattr(kind, "value_field") else str(kind)


def arrow_field(field: Field) -> pa.Field:
    """A declared column as a source of text yields it; addresses stay text until they are ingested."""
    match field.type.kind:
        case Kind.BOOLEAN:
            return pa.field(field.name, pa.bool_())
        case Kind.INTEGER:
            return pa.field(field.name, {8: pa.int8(), 16: pa.int16(), 32: pa.int32()}.get(field.type.bits, pa.int64()))
        case Kind.DOUBLE:
            return pa.field(field.name, pa.float64())
        case Kind.TIMESTAMP:
            return pa.field(field.name, pa.timestamp("us", tz="UTC"))
        case Kind.INET:
            return pa.field(field.name, pa.string(), metadata={TYPE_KEY: b"INET"})
    return pa.field(field.name, pa.string())
