"""Codes: a number below `size` for every row, and what it stands for.

Values that lie close together are numbered by rank, others by a table. The codes of a key of several attributes are
products of theirs, as long as those are not many more than the rows; else they are numbered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from penstock.kernels.tables import rolling as kernels
from penstock.relations.component import Component
from penstock.state.segments.groups import KeyColumn

Array = np.ndarray
Components = dict[Component, Array]
NEAR = 1 << 16  # values of such a span are ranked, however few they are
SOME = 1 << 15  # codes that a first, small table has room for
SPARSE = 4  # places of a product to each row, at most


class Coded(Protocol):
    """`codes` are in as few bytes as they need."""

    @property
    def codes(self) -> Array: ...
    @property
    def size(self) -> int: ...

    def columns(self, codes: Array) -> Keys:
        """What these codes stand for: the columns, and their codes."""
        ...


@dataclass(frozen=True)
class Single:
    """A column: the code of each row, and what codes stand for."""

    codes: Array
    column: KeyColumn

    @cached_property
    def size(self) -> int:
        return self.column.size

    def components(self, codes: Array) -> Components:
        varying = self.column.varying
        return {
            name: gathered(values, codes) if name in varying else zeros(len(codes))
            for name, values in self.column.values.items()
        }

    def columns(self, codes: Array) -> Keys:
        return [(self, codes)]


@dataclass(frozen=True)
class Product:
    """Two attributes: a code is one of the first times the size of the second, plus one of the second; `numbers` has
    those that occur where they were numbered again."""

    codes: Array
    size: int
    first: Coded
    second: Coded
    numbers: Array | None = None

    def columns(self, codes: Array) -> Keys:
        numbers = codes if self.numbers is None else self.numbers[codes]
        one, other = np.divmod(numbers, self.second.size)
        return [*self.first.columns(one), *self.second.columns(other)]


Keys = Sequence[tuple[Single, Array]]  # columns of a key, and the code of each group in them


def gathered(values: Array, at: Array) -> Array:
    """The values at these places."""
    found = np.empty(len(at), np.int64)
    kernels.gather(values, at, found)
    return found


_zeros = [np.zeros(1 << 16, np.int64)]  # the longest so far


def zeros(count: int) -> Array:
    """Nothing but zeros, that nobody may write. Most NULL and IPv6 flags are such: all share the same ones, which the
    cache holds."""
    if len(_zeros[0]) < count:
        _zeros[0] = np.zeros(1 << count.bit_length(), np.int64)
    found = _zeros[0][:count]
    found.flags.writeable = False
    return found


def coded(values: Array) -> tuple[Array, Array]:
    """Codes of some integers, and the integer of each."""
    rows = len(values)
    if not rows:
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low < max(NEAR, 2 * rows):
        return _ranked(values, low, high - low + 1)
    for room in (SOME, rows):
        if room <= rows:
            found, codes = np.empty(room, np.int64), np.empty(rows, np.int32)
            table = np.zeros(1 << (2 * room).bit_length(), np.uint32)
            count = kernels.code_values(values, table, found, codes)
            if count >= 0:
                return narrow(codes, count), found[:count]
    raise AssertionError("rows have at most as many values")


def _ranked(values: Array, low: int, span: int) -> tuple[Array, Array]:
    found: Array = np.empty(min(span, len(values)), np.int64)
    codes: Array = np.empty(len(values), code_type(span))
    count = kernels.rank_values(values, low, np.zeros(span, np.int32), found, codes)
    return codes, found[:count]


def code_type(size: int) -> type:
    """Of codes below this size."""
    return np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.int32


def narrow(codes: Array, size: int) -> Array:
    return codes.astype(code_type(size), copy=False)


def product(parts: Sequence[Coded], rows: int) -> Coded:
    """The key of several attributes."""
    made = parts[0]
    for part in parts[1:]:
        made = _pair(made, part, rows)
    return made


def _pair(one: Coded, other: Coded, rows: int) -> Coded:
    size = one.size * other.size
    if size <= max(NEAR, SPARSE * rows):
        combined = one.codes.astype(np.int32)
        kernels.combine_codes(other.codes, other.size, combined)
        return Product(combined, size, one, other)
    numbers = one.codes.astype(np.int64) * other.size + other.codes
    again, found = coded(numbers)
    return Product(again, len(found), one, other, found)
