"""Arrow arrays as numpy arrays: the buffers themselves where possible, without a copy.

What stands under a NULL is undefined before and after. A value that does not fit its type is *bad*.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels import inet
from penstock.kernels.tables.fold import order_bits
from penstock.kernels.tables.pack import ALL_VALID
from penstock.logical.types import Kind, Type
from penstock.runtime.expressions.operands import Addresses, truths
from penstock.sources.base import ADDRESS
from penstock.sources.decimals import day_times, float_decimals, whole_decimals

Array = np.ndarray
MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass
class Ingested:
    """A column of a chunk as int64 numbers. `valid` (uint8) is empty where all are; `bad` is None where none is."""

    numbers: Array
    valid: Array
    floats: Array | None = None
    bad: Array | None = None
    inet6: Array | None = None  # code + 1 of IPv6 addresses; None where there is none
    prefixes: dict[int, Array] = field(default_factory=dict)  # the same of their prefixes, by length
    strings: pa.Array | None = None


def numeric(kind: Type, array: pa.Array) -> Ingested:
    """A column of any type but strings and addresses."""
    valid = present(array)
    match kind.kind:
        case Kind.DOUBLE if pa.types.is_decimal(plain(array).type):
            return doubles(float_decimals(plain(array)), valid)
        case Kind.DOUBLE:
            return doubles(view(plain(array).cast(pa.float64(), safe=False), np.float64), valid)
        case Kind.TIMESTAMP:
            return timestamps(plain(array), valid)
        case Kind.BOOLEAN:
            return Ingested(view(array.cast(pa.int8()), np.int8).astype(np.int64), valid)
    return integers(plain(array), valid, kind.bits)


def present(array: pa.Array) -> Array:
    """Which values are not NULL (uint8); empty where all are."""
    if array.null_count == 0:
        return ALL_VALID
    return truths(pc.is_valid(array)).view(np.uint8)


def plain(array: pa.Array) -> pa.Array:
    """Not dictionary-encoded."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def encoded(array: pa.Array) -> tuple[Array, pa.Array]:
    """(indices, values) of a string column, encoding it if the source did not."""
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    indices = array.indices if array.indices.type == pa.int32() else array.indices.cast(pa.int32())
    return view(indices, np.int32), array.dictionary


def with_nulls(strings: pa.Array, valid: Array) -> pa.Array:
    """NULL where a text is not valid (uint8, empty where all are); what is dictionary-encoded keeps its dictionary."""
    if not len(valid):
        return strings
    if not pa.types.is_dictionary(strings.type):
        return pc.if_else(pa.array(valid.view(bool)), strings, None)
    indices, words = encoded(strings)
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=valid == 0), words, safe=False)


def taken(by_index: Array, indices: Array, valid: Array) -> Array:
    """What a dictionary's values became, for each row; of a NULL, what the first one became."""
    if len(valid):
        indices = np.where(valid.astype(bool), indices, 0)
    return by_index[indices] if len(by_index) else np.zeros(len(indices), np.int64)


def view(array: pa.Array, kind: type) -> Array:
    """The values' buffer itself; what stands under a NULL is undefined."""
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def only_valid(bad: Array, valid: Array) -> Array | None:
    """Bad values that are not NULL; None where there are none."""
    if len(valid):
        bad = bad & valid.astype(bool)
    return bad if bad.any() else None


def integers(array: pa.Array, valid: Array, bits: int) -> Ingested:
    """Integers of any Arrow type; those that do not fit a type of `bits` bits are bad."""
    if pa.types.is_decimal(array.type):
        numbers, outside = whole_decimals(array)
    elif array.type == pa.uint64():
        numbers = view(array, np.uint64).view(np.int64)
        outside = numbers < 0
    else:
        # Arrow would look at every value on the way; what stands under a NULL is undefined before and after. Arrow and
        # numpy call whole numbers the same; to ask Arrow for numpy's type, older versions load pandas.
        numbers = view(array, np.dtype(str(array.type)).type).astype(np.int64, copy=False)
        outside = None
    wide = array.type.bit_width if pa.types.is_signed_integer(array.type) else array.type.bit_width + 1
    if bits < 64 and wide > bits:
        beyond = (numbers < -(1 << (bits - 1))) | (numbers >= 1 << (bits - 1))
        outside = beyond if outside is None else outside | beyond
    bad = None if outside is None else only_valid(outside, valid)
    return Ingested(numbers if bad is None else np.where(bad, 0, numbers), valid, bad=bad)


def doubles(floats: Array, valid: Array) -> Ingested:
    """Floats, with their order bits as numbers."""
    numbers = np.empty(len(floats), np.int64)
    order_bits(floats, numbers)
    return Ingested(numbers, valid, floats=floats)


def timestamps(array: pa.Array, valid: Array) -> Ingested:
    """Microseconds of times of any unit, and of dates at midnight."""
    if pa.types.is_date32(array.type):
        midnights, beyond = day_times(array)
        return Ingested(midnights, valid, bad=only_valid(beyond, valid))
    raw, unit = view(array, np.int64), "ms" if pa.types.is_date64(array.type) else array.type.unit
    if unit == "ns":
        return Ingested(raw // 1000, valid)
    scale = MICROSECONDS[unit]
    if scale == 1:
        return Ingested(raw, valid)
    limit = ((1 << 63) - 1) // scale
    bad = only_valid((raw > limit) | (raw < -limit), valid)
    return Ingested(np.where((raw > limit) | (raw < -limit), 0, raw) * scale, valid, bad=bad)


def address_array(addresses: Addresses, valid: Array | None) -> pa.Array:
    """Addresses as sources give them."""
    rows, six = len(addresses.low), addresses.version == 6
    _, data = inet.network_order(addresses.high, addresses.low)
    long = pa.Array.from_buffers(pa.binary(16), rows, [pa.array(six).buffers()[1], pa.py_buffer(data)])
    short = pa.array(np.where(six, 0, addresses.low).astype(np.uint32))
    nulls = None if valid is None else pa.array(~valid)
    return pa.StructArray.from_arrays([short, long], fields=list(ADDRESS), mask=nulls)
