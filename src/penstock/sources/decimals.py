"""Decimals and dates of Arrow as the numbers that the engine has for them.

A decimal is a whole number of 128 bits, two words, and a scale. Arrow's own way to a float misses the nearest one in
a seventh of amounts with two decimals; a division of two exact floats does not.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

Array = np.ndarray
DAY = 86_400_000_000
NARROW = 38  # digits that 128 bits hold
WORD = 2.0**64
MOST_DAYS = ((1 << 63) - 1) // DAY


def whole_decimals(array: pa.Array) -> tuple[Array, Array]:
    """(numbers, which of them do not fit 64 bits) of decimals of scale zero."""
    low, high = _words(array)
    return low, high != low >> 63


def float_decimals(array: pa.Array) -> Array:
    """Decimals of any scale: the nearest float of those with up to fifteen digits."""
    scale = array.type.scale
    if array.type.precision > NARROW:
        return np.array(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
    low, high = _words(array)
    wide = high.astype(np.float64) * WORD + low.view(np.uint64).astype(np.float64)
    floats: Array = np.where(high == low >> 63, low.astype(np.float64), wide) / 10.0**scale
    return floats


def day_times(array: pa.Array) -> tuple[Array, Array]:
    """(microseconds of the midnights, which of them do not fit 64 bits) of dates counted in days."""
    days = _buffer(array, np.int32, 1).astype(np.int64)
    beyond = np.abs(days) > MOST_DAYS
    return np.where(beyond, 0, days) * DAY, beyond


def _words(array: pa.Array) -> tuple[Array, Array]:
    """The low and the high word of each decimal."""
    if not pa.types.is_decimal128(array.type):  # narrower ones
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    pairs = _buffer(array, np.int64, 2).reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), pairs[:, 1]


def _buffer(array: pa.Array, kind: type, words: int) -> Array:
    """The values themselves, `words` numbers each; what stands under a NULL is undefined."""
    if not len(array):
        return np.empty(0, kind)
    first = array.offset * words
    return np.frombuffer(array.buffers()[1], kind)[first : first + len(array) * words]
