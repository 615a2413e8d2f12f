"""One small number per answer, equal for equal sets of rows in whatever order, type or file they come.

Every engine hands its result rows as Arrow columns (keys…, window start, count, sum); a row's hash mixes its
values as 64-bit integers, the digest is the number of rows and the sum of their hashes.  Addresses may be
integers or dotted quads, prefixes of addresses (10.0.0.0/8) the number that their first bits are, times timestamps or
microseconds; other text counts by its bytes, and a NULL is a value of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

Words = NDArray[np.uint64]
NULL = np.uint64(0x6E756C6C6E756C6C)
QUAD = r"^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(/\d{1,2})?$"


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


def digest_files(paths: Iterable[Path], names: Sequence[str]) -> Digest:
    """Digest of these columns, in this order, of Parquet files."""
    return sum(
        (digest_batches(pq.ParquetFile(path).iter_batches(columns=list(names)), names) for path in paths), Digest()
    )


def agrees(found: Sequence[str], expected: Sequence[str]) -> bool | None:
    """Whether digests are those expected; `counted` ones agree with all of as many rows. None: there are none."""
    if not found:
        return None
    if len(found) != len(expected):
        return False
    return all(e == f or (f.endswith(":") and e.startswith(f)) for f, e in zip(found, expected, strict=True))


def counted(rows: int) -> str:
    """In the place of a digest, of rows that were counted and discarded."""
    return f"{rows}:"


def digest(columns: Sequence[pa.Array]) -> Digest:
    """Digest of rows given as columns of equal length."""
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
    words = _of_values(column)
    if column.null_count:
        words = np.where(column.is_null().to_numpy(zero_copy_only=False), NULL, words)
    return words


def _of_values(column: pa.Array) -> Words:
    """A word for each value; anything for a NULL."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        values = _of_texts(column.dictionary) if _textual(column.type) else _of_values(column.dictionary)
        codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return values[codes] if len(values) else np.zeros(len(codes), np.uint64)
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    numbers = np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    return numbers.view(np.uint64)


def _textual(kind: pa.DictionaryType) -> bool:
    return bool(pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type))


def _of_texts(texts: pa.Array) -> Words:
    """Dotted quads and prefixes as the numbers they are, other text by its bytes, eight at a time."""
    if not len(texts):
        return np.zeros(0, np.uint64)
    given = np.array(texts.fill_null("").cast(pa.binary()).to_pylist(), dtype=bytes)
    width = -(-max(1, given.dtype.itemsize) // 8)
    parts = np.ascontiguousarray(given.astype(f"S{8 * width}")).view(np.uint64).reshape(len(given), width)
    salts = np.arange(1, width + 1, dtype=np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    # Where a text has ended nothing is added: its word must not depend on how long others are.
    words = np.where(parts != 0, _mix(parts ^ salts), np.uint64(0)).sum(axis=1, dtype=np.uint64)
    quads = pc.fill_null(pc.match_substring_regex(texts, QUAD), False)
    words[quads.to_numpy(zero_copy_only=False)] = _addresses(texts.filter(quads))
    return np.asarray(words, dtype=np.uint64)


def _addresses(column: pa.Array) -> Words:
    """Of a prefix, its first bits; an address is one of 32."""
    whole = pc.replace_substring_regex(column, r"^([^/]*)$", r"\1/32")
    parts = pc.split_pattern(pc.replace_substring(whole, "/", "."), ".").flatten().cast(pa.uint64())
    numbers = parts.to_numpy(zero_copy_only=False).reshape(-1, 5)
    shifts = np.array([24, 16, 8, 0], dtype=np.uint64)
    quads = np.bitwise_or.reduce(numbers[:, :4] << shifts, axis=1)
    return np.asarray(quads >> (np.uint64(32) - numbers[:, 4]), dtype=np.uint64)
