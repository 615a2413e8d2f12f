"""One small number per answer, equal for equal sets of rows in whatever order, type or file they come.

Every engine hands its result rows as Arrow columns (keys…, window start, count, sum); a row's hash mixes its
values as 64-bit integers, the digest is the number of rows and the sum of their hashes.  Addresses may be
integers or dotted quads, times timestamps or microseconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Digest:
    """Of a set of rows; digests of parts add up to that of the whole."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.rows + other.rows, (self.total + other.total) % 2**64)

    def __str__(self) -> str:
        return f"{self.rows}:{self.total:016x}"


def digest_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Digest:
    """Digest of these columns, in this order, of all batches."""
    return sum((digest([batch.column(name) for name in names]) for batch in batches), Digest())


def digest(columns: Sequence[pa.Array]) -> Digest:
    """Digest of rows given as columns of equal length without NULLs."""
    if any(column.null_count for column in columns):
        raise ValueError("an answer has a NULL where none can be")
    return digest_words([_words(column) for column in columns])


def digest_words(columns: Sequence[Words]) -> Digest:
    """Digest of rows given as a word for each value."""
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for words in columns:
        hashes = _mix(hashes ^ words)
    return Digest(len(hashes), int(np.sum(hashes, dtype=np.uint64)))


def text_words(values: Iterable[object]) -> Words:
    """A word for each value by its text; None has one of its own."""
    digests = [hashlib.blake2b(repr(None if v is None else str(v)).encode(), digest_size=8).digest() for v in values]
    return np.frombuffer(b"".join(digests), np.uint64)


def _mix(words: Words) -> Words:
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _words(column: pa.Array) -> Words:
    kind = column.type
    if pa.types.is_dictionary(kind):
        values = _words(column.dictionary)
        return np.asarray(values[column.indices.to_numpy(zero_copy_only=False)], dtype=np.uint64)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _addresses(column)
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    values = np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)
    return values.view(np.uint64)


def _addresses(column: pa.Array) -> Words:
    parts = pc.split_pattern(column, ".").flatten().cast(pa.uint64()).to_numpy(zero_copy_only=False).reshape(-1, 4)
    shifts = np.array([24, 16, 8, 0], dtype=np.uint64)
    return np.asarray(np.bitwise_or.reduce(parts << shifts, axis=1), dtype=np.uint64)
