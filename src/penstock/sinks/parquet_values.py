"""A column of a result as what Parquet stores of it: values that are there, which rows have one, least and greatest.

Between the sinks' tables and `parquet_file`, which writes the values as pages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.pack import all_valid, component_range

Array = np.ndarray
BOOLEAN, INT32, INT64, DOUBLE, BYTE_ARRAY = 0, 1, 2, 5, 6  # stored types, by their numbers in the format
TIME = pa.timestamp("us", tz="UTC")
TYPES = {
    pa.bool_(): BOOLEAN, pa.int8(): INT32, pa.int16(): INT32, pa.int32(): INT32, pa.int64(): INT64,
    TIME: INT64, pa.float64(): DOUBLE, pa.string(): BYTE_ARRAY,
}  # fmt: skip
LONGEST = 1024  # bytes of a string that may be a bound

Bounds = tuple[bytes, bytes]


@dataclass(frozen=True)
class Values:
    """`numbers` are integers, doubles, truths or codes of `words`; `present` says which rows have one (None: all);
    `bounds` are the least and the greatest as they are stored; `one`: there is a single value."""

    kind: int
    numbers: Array
    present: Array | None
    nulls: int
    bounds: Bounds | None
    words: pa.StringArray | None = None
    one: bool = False


def stored_type(kind: pa.DataType) -> pa.DataType:
    """What a column is to a reader: a dictionary is only a way to hold strings."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def values_of(column: pa.ChunkedArray) -> Values:
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_string(array.type):
        array = array.dictionary_encode()
    present = None
    if array.null_count:
        present = array.is_valid().to_numpy(zero_copy_only=False)
        array = array.drop_null()
    nulls = len(column) - len(array)
    if pa.types.is_dictionary(array.type):
        codes, words = _used(array.indices.to_numpy(), array.dictionary)
        return Values(BYTE_ARRAY, codes, present, nulls, _text_bounds(words), words)
    kind = TYPES[array.type]
    if kind == BOOLEAN:
        truths = array.to_numpy(zero_copy_only=False)
        return Values(kind, truths, present, nulls, _truth_bounds(truths))
    if kind == DOUBLE:
        floats = array.to_numpy()
        return Values(kind, floats, present, nulls, _float_bounds(floats))
    numbers = (array.cast(pa.int64()) if array.type == TIME else array).to_numpy().astype(np.int64, copy=False)
    if not len(numbers):
        return Values(kind, numbers, present, nulls, None)
    low, high = component_range(numbers, all_valid())
    size = 4 if kind == INT32 else 8
    bounds = low.to_bytes(size, "little", signed=True), high.to_bytes(size, "little", signed=True)
    return Values(kind, numbers, present, nulls, bounds, one=low == high)


def _used(codes: Array, words: pa.StringArray) -> tuple[Array, pa.StringArray]:
    """Codes of a dictionary that has no other words than those in use."""
    there = np.zeros(len(words), bool)
    there[codes] = True
    if there.all():
        return codes.astype(np.int32, copy=False), words
    renamed = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return renamed[codes], words.filter(pa.array(there))


def _truth_bounds(truths: Array) -> Bounds | None:
    return (bytes([int(truths.all())]), bytes([int(truths.any())])) if len(truths) else None


def _float_bounds(floats: Array) -> Bounds | None:
    """NaNs have no place in the order; a bound of zero stands for both zeros."""
    floats = floats[~np.isnan(floats)]
    if not len(floats):
        return None
    low, high = float(floats.min()), float(floats.max())
    return np.float64(low or -0.0).tobytes(), np.float64(high or 0.0).tobytes()


def _text_bounds(words: pa.StringArray) -> Bounds | None:
    if not len(words):
        return None
    edges = pc.min_max(words.cast(pa.binary()))
    low, high = edges["min"].as_py(), edges["max"].as_py()
    return (low, high) if max(len(low), len(high)) <= LONGEST else None
