"""count: of records, or of the values of a column that are there.

Every aggregate of a column keeps the number of its values, which tells a group without a value. As long as the column
has had no NULL that is count(*), which each row has anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.aggregates.base import (
    BOUND,
    Accumulator,
    AggregateFunction,
    Facts,
    FinishedValues,
    Kept,
    State,
    TooMany,
    joining,
    kernels,
)
from penstock.logical.types import BIGINT, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array, Words
    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary

RECORDS = "count"  # the column of count(*) in files


class Counted(Accumulator):
    """The number of values."""

    kind = "count"

    def words(self, facts: Facts) -> int:
        return int(facts.nullable)

    def adds(self, facts: Facts) -> bool:
        return True

    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        import numpy as np

        present = values.valid if len(values.valid) else np.ones(len(values.numbers), np.uint8)
        kernels().add_count(*into.words, into.rows, present)

    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        kernels().add_sum(*into.words, into.rows, words[0], into.everything)

    def repeated(self, words: Words, times: Array) -> Words:
        return (multiplied(words[0], times),)


def multiplied(counts: Array, times: Array) -> Array:
    """Counts times how often. Raises `TooMany` where that leaves BIGINT."""
    if len(counts) and int(counts.max()) * int(times.max()) < BOUND:
        plain: Array = counts * times
        return plain
    product: Array = counts.copy()
    if joining().multiply(product, times):
        raise TooMany
    return product


class Count(AggregateFunction):
    name = "count"
    counts = True

    def result(self, argument: Type) -> Type | None:
        return BIGINT

    def finish(self, kept: Kept) -> FinishedValues:
        return FinishedValues(kept.count)


COUNTED = Counted()
COUNT = Count()


def kept_of(column: str | None, records: Array, states: Mapping[State, Words]) -> Kept:
    """What functions of a column are finished from; `records`: count(*) of each group."""
    counted = None if column is None else states.get(COUNTED.state(column))
    if counted is None:  # no value was NULL, and every group has one
        return Kept(column, records, None, states)
    valid = counted[0] > 0
    return Kept(column, counted[0], None if valid.all() else valid, states)
