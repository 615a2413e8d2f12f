"""Rows of a table by what finds them. A *class* is a set of rows that belong to some record together.

    values of a record ──► code of its equality values (`keys`) ──┬──► class ──► columns of its row, where it has one
                       └─► place of its value (`ranges`) ─────────┘

Ranges of one code cut each other into elementary intervals; all records of an interval have the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.kernels.lookups.places import find_in_groups
from penstock.logical.types import Type
from penstock.runtime.expressions.matching.columns import table_operand
from penstock.runtime.expressions.matching.keys import Keys
from penstock.runtime.expressions.matching.ranges import Places
from penstock.runtime.expressions.operands import Array, Operand, both, nothing, plain, take


@dataclass(frozen=True)
class Intervals:
    """The class of each interval; −1 where no row is. Without equality columns by place, else by the cuts of a code."""

    places: Places
    classes: Array
    firsts: Array | None = None  # where the cuts of each code begin, and of the last one end
    cuts: Array | None = None

    def find(self, codes: Array | None, values: Any) -> Array:
        places = self.places.of(values)
        if codes is None or self.firsts is None:
            by_place: Array = self.classes[places]
            return by_place
        found = np.empty(len(places), np.int64)
        find_in_groups(self.firsts, self.cuts, self.classes, codes, places, found)
        return found


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a match: rows[starts[c]:starts[c + 1]] are those of class c, ascending.

    `unique`: every class has one row.
    """

    starts: Array
    rows: Array
    data: pa.Table = field(repr=False)
    keys: Keys | None = None
    intervals: Intervals | None = None
    doubles: tuple[bool, ...] = ()  # which of a record's values are compared as doubles
    _columns: dict[tuple[str, Type], Operand] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    @property
    def unique(self) -> bool:
        return self.count == len(self.rows)

    def numbers(self, operands: Sequence[Operand], rows: int) -> Operand:
        """The class of each record; `operands` are its values in the order of `record_parts`. NULL where none."""
        if not self.count:
            return Operand(np.zeros(rows, np.int64), np.zeros(rows, bool))
        values = [compared(one.values, double) for one, double in zip(operands, self.doubles, strict=True)]
        codes = None if self.keys is None else self.keys.find(values[: len(values) - (self.intervals is not None)])
        if self.intervals is not None:
            found = self.intervals.find(codes, values[-1])
        else:
            found = np.zeros(rows, np.int64) if codes is None else codes
        valid = found >= 0
        for operand in operands:
            valid = valid if operand.valid is None else valid & operand.valid
        return Operand(np.maximum(found, 0), None if valid.all() else valid)

    def column(self, name: str, kind: Type) -> Operand:
        """A column of the only row of each class."""
        assert self.unique, "a class has several rows"
        if (name, kind) not in self._columns:
            self._columns[name, kind] = _snug(take(table_operand(self.data, name, kind), self.rows))
        return self._columns[name, kind]

    def taken(self, name: str, kind: Type, numbers: Operand) -> Operand:
        """A column of the row that each record found, by the number of its class."""
        if not self.count:
            return nothing(kind, len(numbers.values))
        found = take(self.column(name, kind), numbers.values)
        return Operand(found.values, both(found.valid, numbers.valid))


def _snug(operand: Operand) -> Operand:
    """Texts with no more words in their dictionary than there are texts: tasks take in all of it."""
    strings = operand.values
    if not isinstance(strings, pa.Array) or len(strings.dictionary) <= len(strings):
        return operand
    return Operand(plain(strings).dictionary_encode(), operand.valid)


def compared(values: Any, double: bool) -> Any:
    """Values as they are compared: whole numbers among doubles are doubles."""
    return values.astype(np.float64) if double and values.dtype.kind != "f" else values
