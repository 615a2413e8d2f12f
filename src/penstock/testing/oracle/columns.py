"""Raw Arrow columns → the values the oracle computes with, and which of them fit their declared type.

| type | value in DuckDB | does not fit |
| --- | --- | --- |
| integers | BIGINT | beyond the declared width |
| DOUBLE | DOUBLE, -0.0 as 0.0 | – |
| TIMESTAMP | BIGINT microseconds (nanoseconds cut towards the past) | beyond 64 bits |
| BOOLEAN, STRING | the same | – |
| INET | text code of `addresses` | text that is no address, integer beyond 32 bits |
| PREFIX | text code of `addresses` | – |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.logical.types import Kind, Type
from penstock.testing.oracle.addresses import code_of_number, code_of_text, prefix_code, print_code

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
NANOSECONDS = 1_000
LARGEST = (1 << 63) - 1

RESULT_TYPES = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.DOUBLE: pa.float64(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.STRING: pa.string(),
    Kind.INET: pa.string(),
    Kind.PREFIX: pa.string(),
}
INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


@dataclass(frozen=True)
class OracleValues:
    """A column in the oracle's form; what does not fit is NULL in `array` and False in `fits`."""

    array: pa.Array
    fits: Flags


def result_type(declared: Type) -> pa.DataType:
    """Arrow type of a result column."""
    return INTEGERS[declared.bits] if declared.kind is Kind.INTEGER else RESULT_TYPES[declared.kind]


def read_column(raw: pa.ChunkedArray, declared: Type) -> OracleValues:
    """Bring one raw column into the oracle's form."""
    column = _decoded(raw)
    match declared.kind:
        case Kind.INTEGER:
            return _integers(column, declared.bits)
        case Kind.DOUBLE:
            # Adding zero turns -0.0 into 0.0 and leaves everything else.
            return _all_fit(pc.add(column.cast(pa.float64(), safe=False), 0.0))
        case Kind.TIMESTAMP:
            return _timestamps(column)
        case Kind.INET if pa.types.is_integer(column.type):
            return _mapped(column, code_of_number)
        case Kind.INET:
            return _mapped(column, code_of_text)
        case Kind.BOOLEAN:
            return _all_fit(column.cast(pa.bool_()))
        case _:
            return _all_fit(column.cast(pa.string()))


def prefixes(codes: pa.Array, length: int) -> pa.Array:
    """Prefix codes of address codes."""
    return map_distinct(codes, lambda code: prefix_code(code, length))


def printed(codes: pa.Array) -> pa.Array:
    """Text of address or prefix codes."""
    return map_distinct(codes, print_code)


def map_distinct(column: pa.Array, function: Callable[[Any], str | None]) -> pa.Array:
    """Apply a Python function to text or numbers, once per distinct value; NULL stays NULL."""
    encoded = column.dictionary_encode()
    answers = pa.array([function(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return answers.take(encoded.indices)


def _decoded(raw: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(raw.type):
        raw = raw.cast(raw.type.value_type)
    if pa.types.is_large_string(raw.type):
        raw = raw.cast(pa.string())
    return raw.combine_chunks() if raw.num_chunks else pa.array([], raw.type)


def _all_fit(array: pa.Array) -> OracleValues:
    return OracleValues(array, np.ones(len(array), np.bool_))


def _masked(numbers: Numbers, column: pa.Array, fits: Flags) -> OracleValues:
    missing = np.asarray(column.is_null())
    fits = fits | missing
    return OracleValues(pa.array(numbers, pa.int64(), mask=missing | ~fits), fits)


def _integers(column: pa.Array, bits: int) -> OracleValues:
    limit = 1 << (bits - 1)
    plain = np.asarray(column.fill_null(0))
    fits = np.asarray(plain <= plain.dtype.type(min(limit - 1, np.iinfo(plain.dtype).max)))
    if plain.dtype.kind == "i":
        fits = fits & np.asarray(plain >= plain.dtype.type(max(-limit, np.iinfo(plain.dtype).min)))
    return _masked(np.where(fits, plain, 0).astype(np.int64), column, fits)


def _timestamps(column: pa.Array) -> OracleValues:
    unit = column.type.unit
    plain = np.asarray(column.cast(pa.int64()).fill_null(0))
    if unit == "ns":
        return _masked(np.floor_divide(plain, NANOSECONDS), column, np.ones(len(plain), np.bool_))
    factor = MICROSECONDS[unit]
    fits = np.asarray((plain <= LARGEST // factor) & (plain >= -(LARGEST // factor)))
    return _masked(np.where(fits, plain, 0) * factor, column, fits)


def _mapped(column: pa.Array, code: Callable[[Any], str | None]) -> OracleValues:
    array = map_distinct(column, code)
    return OracleValues(array, np.asarray(array.is_valid()) | np.asarray(column.is_null()))
