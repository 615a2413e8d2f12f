"""Bounds of a table's rows as places in one sorted list of points, and where values of records lie in it.

Every type has a next value: of a text, the text with a zero byte at its end. So a row holds the values from one point
up to another, whatever its operators are:

    value >= b    from b on               value < b     up to b
    value >  b    from the next one on    value <= b    up to the next one

A place is the number of points that are at most the value: 0 before the first one. A row without a lower bound begins
at place 0; one without an upper bound ends after all places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.lookups.places import SIGN, in_buckets, place_addresses, place_texts, place_words
from penstock.runtime.expressions.matching.keys import PerText, numbered, words_of
from penstock.runtime.expressions.operands import Addresses, Array, ordering, plain
from penstock.sources.texts import text_bytes

LOWER, UPPER = (">", ">="), ("<", "<=")
AFTER = (">", "<=")  # what begins or ends after the bound itself
LAST, IPV4_LAST, ONES = np.iinfo(np.int64).max, np.uint64((1 << 32) - 1), np.uint64((1 << 64) - 1)


class Places(Protocol):
    """Sorted points."""

    count: int

    def of(self, values: Any) -> Array:
        """How many points are at most each value."""
        ...


class Ranges:
    """The ranges of rows, [begin, end) in places, and what finds the places of records."""

    def __init__(self, bounds: Sequence[tuple[str, Any]]) -> None:
        """`bounds` are (operator, values), a value for each row."""
        rows = _length(bounds[0][1])
        cuts = [_next(values) if operator in AFTER else (values, None) for operator, values in bounds]
        self.places, ranks = _pointed([values for values, _ in cuts])
        self.begin = np.zeros(rows, np.int64)
        self.end = np.full(rows, self.places.count + 1, np.int64)
        for (operator, _), (_, beyond), rank in zip(bounds, cuts, ranks, strict=True):
            place = rank + 1
            if beyond is not None:
                place[beyond] = self.places.count + 1
            if operator in LOWER:
                np.maximum(self.begin, place, out=self.begin)
            else:
                np.minimum(self.end, place, out=self.end)


def _length(values: Any) -> int:
    return len(values.version) if isinstance(values, Addresses) else len(values)


def _next(values: Any) -> tuple[Any, Array | None]:
    """The next value of each, and where there is none."""
    if isinstance(values, pa.Array):
        return pc.binary_join_element_wise(plain(values), "\0", ""), None
    if isinstance(values, Addresses):
        four, full = values.version == 4, values.low == ONES
        crossing = four & (values.low == IPV4_LAST)
        version = np.where(crossing, 6, values.version).astype(np.uint8)
        with np.errstate(over="ignore"):
            low = np.where(crossing, np.uint64(0), values.low + np.uint64(1))
            high = np.where(full, values.high + np.uint64(1), values.high)
        return Addresses(version, high, low), full & (values.high == ONES)
    words = words_of(values)
    beyond = words == LAST
    return words + ~beyond, beyond


def _pointed(columns: Sequence[Any]) -> tuple[Places, list[Array]]:
    """All values of these columns as points, and the number of each value among them."""
    if isinstance(columns[0], Addresses):
        parts = (np.concatenate([getattr(values, part) for values in columns]) for part in ("version", "high", "low"))
        points = Addresses(*parts)
        numbers, first = numbered(points)
        places: Places = AddressPlaces(Addresses(points.version[first], points.high[first], points.low[first]))
    elif isinstance(columns[0], pa.Array):
        places, numbers = _texts([plain(values) for values in columns])
    else:
        words, numbers = np.unique(np.concatenate([words_of(values) for values in columns]), return_inverse=True)
        places = WordPlaces(words)
    edges = np.cumsum([_length(values) for values in columns])[:-1]
    return places, np.split(numbers, edges)


def _texts(columns: Sequence[pa.Array]) -> tuple[TextPlaces, Array]:
    encoded = pa.concat_arrays(columns).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary.cast(pa.binary())).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return TextPlaces(encoded.dictionary.take(pa.array(order))), ranks[encoded.indices.to_numpy()]


class WordPlaces:
    def __init__(self, points: Array) -> None:
        self.count, self._points = len(points), points.view(np.uint64) ^ np.uint64(SIGN)
        self._buckets = in_buckets(self._points)

    def of(self, values: Array) -> Array:
        words = words_of(values)
        places = np.empty(len(words), np.int64)
        place_words(self._points, *self._buckets, words, places)
        return places


class AddressPlaces:
    def __init__(self, points: Addresses) -> None:
        self.count = len(points.version)
        fours = int((points.version == 4).sum())
        self._fours, self._highs, self._lows = points.low[:fours], points.high[fours:], points.low[fours:]
        self._four_buckets, self._six_buckets = in_buckets(self._fours), in_buckets(self._highs)

    def of(self, values: Addresses) -> Array:
        places = np.empty(len(values.version), np.int64)
        version, high, low = (np.ascontiguousarray(part) for part in (values.version, values.high, values.low))
        place_addresses(
            self._fours, *self._four_buckets, self._highs, self._lows, *self._six_buckets, version, high, low, places
        )
        return places


class TextPlaces:
    def __init__(self, points: pa.Array) -> None:
        self.count = len(points)
        self._points = text_bytes(points)
        self._places = PerText(self._placed)

    def of(self, values: pa.Array) -> Array:
        return self._places(values)

    def _placed(self, texts: pa.Array) -> Array:
        places = np.empty(len(texts), np.int64)
        place_texts(*self._points, *text_bytes(texts), places)
        return places


# -- lengths


def lengths(bounds: Sequence[tuple[str, Any]]) -> Array:
    """How long the range of each row is, from its lower to its upper bound: numbers that are in that order.

    Without a bound a range goes to the end of its type: of two of these, one is inside the other.
    """
    low, high = (extreme(bounds, side) for side in (LOWER, UPPER))
    some = high if low is None else low
    if isinstance(some, Addresses):
        return _address_lengths(low, high, len(some.version))
    if some.dtype.kind == "f":
        return _double_lengths(low, high)
    least, most = np.uint64(1 << 63), np.uint64((1 << 63) - 1)
    begin = least if low is None else words_of(low).view(np.uint64)
    with np.errstate(over="ignore"):
        span = np.subtract(most if high is None else words_of(high).view(np.uint64), begin)
    numbers: Array = np.bitwise_xor(span, least).view(np.int64)
    return numbers


def extreme(bounds: Sequence[tuple[str, Any]], side: tuple[str, str]) -> Any:
    """The greatest lower, or the least upper bound of each row; None without one."""
    found: Any = None
    for values in (values for operator, values in bounds if operator in side):
        found = values if found is None else _farther(found, values, side == LOWER)
    return found


def _farther(one: Any, other: Any, greatest: bool) -> Any:
    below, _ = ordering(one, other)
    first = ~below if greatest else below
    if isinstance(one, Addresses):
        pairs = ((one.version, other.version), (one.high, other.high), (one.low, other.low))
        return Addresses(*(np.where(first, a, b) for a, b in pairs))
    if isinstance(one, pa.Array):
        return pc.if_else(pa.array(first), plain(one), plain(other))
    return np.where(first, one, other)


def _double_lengths(low: Array | None, high: Array | None) -> Array:
    """Of doubles. NaN is above all numbers: a range up to it has no end, one that begins there holds it alone."""
    below = np.float64(-np.inf) if low is None else low
    above = np.float64(np.nan) if high is None else high
    with np.errstate(invalid="ignore"):
        span = np.where(np.equal(below, above), 0.0, np.subtract(above, below))
    span = np.where(np.isnan(above), np.inf, span)
    return words_of(np.where(np.isnan(below), 0.0, span))


def _address_lengths(low: Addresses | None, high: Addresses | None, rows: int) -> Array:
    """As numbers of 128 bits; the first address of IPv6 comes after the last one of IPv4."""
    if low is None:
        low = Addresses(np.full(rows, 4, np.uint8), np.zeros(rows, np.uint64), np.zeros(rows, np.uint64))
    if high is None:
        high = Addresses(np.full(rows, 6, np.uint8), np.full(rows, ONES), np.full(rows, ONES))
    crossing = low.version < high.version
    with np.errstate(over="ignore"):
        short = high.low - low.low
        long = high.high - low.high - (high.low < low.low)
        # All of IPv4 that is above, and all of IPv6 that is below; the sum carries, perhaps into a third word.
        wide = high.low + ((np.uint64(1) << np.uint64(32)) - np.where(crossing, low.low, np.uint64(0)))
        over = high.high + (wide < high.low)
    carried = (crossing & (over < high.high)).astype(np.uint8)
    codes, _ = numbered(Addresses(carried, np.where(crossing, over, long), np.where(crossing, wide, short)))
    return codes
