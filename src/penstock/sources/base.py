"""The contract of a source, and the meaning of its Arrow types.

A source is a finite sequence of records in stream order, addressed by row number: positions are plain
integers, so an offset is one number and any range of rows can be read again after a failure.

    open_source(uri, options) ──► Source ──► cut (micro-batch) ──► splits (tasks) ──► read (Arrow batches)

`cut` and `splits` run in the driver's source process and must be deterministic; `read` runs in a task.
To add a source: write one module with a class of this shape, and add its scheme in `sources.registry`.

Delivery: a source is re-readable at any row, therefore the engine on top of it can promise exactly once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from penstock.logical.query import Field
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, Type

TYPE_KEY = b"penstock.type"  # field metadata: b"INET" marks integers or text that are addresses


@dataclass(frozen=True)
class Split:
    """What one task reads: rows [start, stop) in stream order."""

    start: int
    stop: int


class Source(Protocol):
    """A finite, re-readable stream. Instances are pickled to tasks: keep them small, open files lazily."""

    def schema(self) -> pa.Schema:
        """Arrow schema of what `read` yields for all columns."""
        ...

    def rows(self) -> int:
        """Number of records; the end of the stream."""
        ...

    def cut(self, start: int, limit: int) -> int:
        """End of the micro-batch that starts at `start` and has at most `limit` rows (at least one)."""
        ...

    def splits(self, start: int, stop: int, parallelism: int) -> list[Split]:
        """Cover rows [start, stop) by about `parallelism` splits of similar size, in order."""
        ...

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the split's rows in order, these columns in this order, at most `batch_rows` at a time."""
        ...

    def fingerprint(self) -> str:
        """Changes when the records of the stream change: a checkpoint refuses to go on then."""
        ...


def even_splits(start: int, stop: int, parallelism: int) -> list[Split]:
    """Cut rows [start, stop) into at most `parallelism` non-empty ranges of nearly equal size.

    >>> even_splits(0, 5, 2)
    [Split(start=0, stop=2), Split(start=2, stop=5)]
    """
    count = max(1, min(parallelism, stop - start))
    edges = [start + (stop - start) * i // count for i in range(count + 1)]
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
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return STRING
    return None


def fields(schema: pa.Schema) -> tuple[Field, ...]:
    """The usable columns of a source, for a stream declared without a schema."""
    typed = ((field.name, logical_type(field)) for field in schema)
    return tuple(Field(name, kind) for name, kind in typed if kind is not None)
