"""Columns of values that expressions compute with: numbers, texts and addresses, each with what is NULL.

`runtime.expressions.evaluate` goes through expressions; the pieces it shares with `functions` and `casts` are here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels import inet
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables.fold import order_bits
from penstock.logical.types import Kind, Type

Array = np.ndarray
FOUR, NOTHING = np.uint8(4), np.uint64(0)  # of all IPv4 addresses


@dataclass(frozen=True)
class Addresses:
    """Addresses as numbers; IPv4 sorts before IPv6, numerically inside."""

    version: Array
    high: Array
    low: Array


@dataclass(frozen=True)
class Operand:
    """`values` are numbers, booleans, `Addresses` or an Arrow string array; `valid` None: no NULLs.

    What stands in the place of a NULL is undefined, but always a value of the type.
    """

    values: Any
    valid: Array | None = None


def array_of(values: Array, nulls: Array | None = None) -> pa.Array:
    """Numbers or flags as Arrow has them. Given an array, pyarrow itself loads pandas: 0.14 s in each worker."""
    values = np.ascontiguousarray(values)
    there = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    data = np.packbits(values, bitorder="little") if values.dtype == bool else values
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [there, pa.py_buffer(data)])


def decoded(numbers: Array, codes: Array | None, dictionary: Dictionary | None) -> Addresses:
    """Addresses from the numbers of IPv4 ones, and the codes of IPv6 ones in a dictionary.

    `codes` is negative where an address is IPv4; None, where all are. Without an IPv6 address no dictionary is needed.
    """
    low, six = numbers.view(np.uint64), None if codes is None else codes >= 0
    if codes is None or six is None or not six.any():
        return Addresses(np.broadcast_to(FOUR, len(low)), np.broadcast_to(NOTHING, len(low)), low)
    assert dictionary is not None
    low = low.copy()
    version, high = np.full(len(low), FOUR), np.zeros(len(low), np.uint64)
    highs, lows = inet.from_network_order(dictionary.data)
    at = codes[six]
    version[six], high[six], low[six] = 6, highs[at], lows[at]
    return Addresses(version, high, low)


def nothing(kind: Type, rows: int) -> Operand:
    """NULLs of a type."""
    none = np.zeros(rows, bool)
    match kind.kind:
        case Kind.STRING:
            return Operand(repeated("", rows), none)
        case Kind.INET | Kind.PREFIX:
            wide = np.zeros(rows, np.uint64)
            return Operand(Addresses(np.full(rows, 4, np.uint8), wide, wide), none)
        case Kind.DOUBLE:
            return Operand(np.zeros(rows), none)
        case Kind.BOOLEAN:
            return Operand(none, none)
    return Operand(np.zeros(rows, np.int64), none)


def repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text], pa.string()))


def both(one: Array | None, other: Array | None) -> Array | None:
    """Masks of what is there, where None stands for all."""
    if one is None or other is None:
        return other if one is None else one
    result: Array = one & other
    return result


def present(operand: Operand, rows: int) -> Array:
    return np.ones(rows, bool) if operand.valid is None else operand.valid


def choose(first: Array, one: Operand, other: Operand, kind: Type) -> Operand:
    """`one` where `first` holds, else `other`, as values of `kind`."""
    rows = len(first)
    valid = None
    if one.valid is not None or other.valid is not None:
        valid = np.where(first, present(one, rows), present(other, rows))
    a, b = one.values, other.values
    if isinstance(a, Addresses):
        parts = ((a.version, b.version), (a.high, b.high), (a.low, b.low))
        return Operand(Addresses(*(np.where(first, x, y) for x, y in parts)), valid)
    if isinstance(a, pa.Array):
        chosen = pc.if_else(pa.array(first), plain(a), plain(b))
        return Operand(pc.fill_null(chosen, ""), valid)
    values = np.where(first, a, b)
    return Operand(values.astype(np.float64) if kind.kind is Kind.DOUBLE else values, valid)


def take(operand: Operand, rows: Array) -> Operand:
    """The values of some rows, in this order."""
    values, valid = operand.values, None if operand.valid is None else operand.valid[rows]
    if isinstance(values, Addresses):
        return Operand(Addresses(values.version[rows], values.high[rows], values.low[rows]), valid)
    if isinstance(values, pa.Array):
        return Operand(values.take(array_of(rows)), valid)
    return Operand(values[rows], valid)


# -- order


def order_numbers(values: Array) -> Array:
    """Doubles as integers in the engine's order: equal where they are equal."""
    numbers = np.empty(len(values), np.int64)
    order_bits(np.ascontiguousarray(values, np.float64), numbers)
    return numbers


def ordering(left: Any, right: Any) -> tuple[Array, Array]:
    """(left < right, left = right) in the engine's order."""
    if isinstance(left, Addresses):
        same_version, same_high = left.version == right.version, left.high == right.high
        below = (left.high < right.high) | (same_high & (left.low < right.low))
        equal = same_version & same_high & (left.low == right.low)
        return (left.version < right.version) | (same_version & below), equal
    if isinstance(left, pa.Array):
        one, other = (plain(side).cast(pa.binary()) for side in (left, right))
        return flags(pc.less(one, other)), flags(pc.equal(one, other))
    below, equal = left < right, left == right
    if np.result_type(left, right).kind == "f":
        one, other = np.isnan(left), np.isnan(right)
        return below | (other & ~one), equal | (one & other)
    return below, equal


# -- texts


NO_FLAGS = np.empty(0, bool)


def plain(strings: pa.Array) -> pa.Array:
    """Not dictionary-encoded, with 32-bit offsets."""
    decoded = strings.dictionary_decode() if pa.types.is_dictionary(strings.type) else strings
    return decoded if decoded.type == pa.string() else decoded.cast(pa.string())


def flags(result: pa.Array) -> Array:
    """True or false of each; of a NULL, false."""
    return truths(pc.fill_null(result, False))


def truths(array: pa.BooleanArray) -> Array:
    """The same without NULLs. `to_numpy` would load pandas, where there is one: a tenth of a second."""
    bytes_of = array.cast(pa.uint8())
    return np.frombuffer(bytes_of.buffers()[1], bool)[bytes_of.offset :][: len(array)] if len(array) else NO_FLAGS


def per_text(operand: Operand, function: Callable[[pa.Array], tuple[Array, Array | None]]) -> Operand:
    """Numbers or flags of texts, computed once per distinct one where they are dictionary-encoded.

    `function` gives values and which of them exist (None: all).
    """
    strings = operand.values
    if not pa.types.is_dictionary(strings.type):
        values, exist = function(plain(strings))
        return Operand(values, both(operand.valid, exist))
    values, exist = function(plain(strings.dictionary))
    at = text_indices(strings, len(values))
    # One more value, for NULLs, which may be all there is.
    values = np.append(values, values.dtype.type(0))
    return Operand(values[at], both(operand.valid, None if exist is None else np.append(exist, False)[at]))


def mapped(operand: Operand, function: Callable[[pa.Array], pa.Array]) -> Operand:
    """Texts of texts, computed once per distinct one where they are dictionary-encoded."""
    strings = operand.values
    if not pa.types.is_dictionary(strings.type):
        return Operand(pc.fill_null(function(plain(strings)), ""), operand.valid)
    # Two texts may become one: encoded again, so that a code still means one text.
    made = pc.fill_null(function(plain(strings.dictionary)), "").dictionary_encode()
    codes = np.append(made.indices.to_numpy(), 0).astype(np.int32)
    words = made.dictionary if len(made.dictionary) else pa.array([""])
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes[text_indices(strings, len(codes) - 1)]), words)
    return Operand(encoded, operand.valid)


def text_indices(strings: pa.Array, missing: int) -> Array:
    """Where in its dictionary each text stands; `missing` of a NULL."""
    at: Array = pc.fill_null(strings.indices.cast(pa.int64()), missing).to_numpy(zero_copy_only=False)
    # Under a NULL of `valid` any index may stand, also where there is no dictionary.
    inside: Array = np.minimum(at, missing)
    return inside
