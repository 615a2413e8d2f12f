"""sum and avg.

A sum of integers takes one word while its bound proves that enough, then two (128 bits): exact always. A sum of
doubles is two words, the sum and what rounding lost, so that the order of records and merges does not show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.aggregates.base import (
    BOUND,
    Accumulator,
    AggregateFunction,
    Facts,
    FinishedValues,
    Kept,
    OutOfRange,
    joining,
    kernels,
)
from penstock.logical.types import BIGINT, DOUBLE, Kind, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array, Words
    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary


class Summed(Accumulator):
    """The sum of the values."""

    kind = "sum"

    def words(self, facts: Facts) -> int:
        return 2 if facts.wide or self.floating(facts) else 1

    def floating(self, facts: Facts) -> bool:
        return facts.kind is Kind.DOUBLE

    def adds(self, facts: Facts) -> bool:
        return self.words(facts) == 1

    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        if self.floating(facts):
            assert values.floats is not None
            kernels().add_float(*into.words, into.rows, values.floats, values.valid)
        else:
            add = kernels().add_wide if facts.wide else kernels().add_sum
            add(*into.words, into.rows, values.numbers, values.valid)

    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        if self.floating(facts):
            kernels().add_float_partial(*into.words, *words)
        elif facts.wide:
            kernels().add_wide_partial(*into.words, *(self.widened(words) if len(words) == 1 else words))
        else:
            kernels().add_sum(*into.words, into.rows, words[0], into.everything)

    def repeated(self, words: Words, times: Array) -> Words:
        import numpy as np

        if words[0].dtype.kind == "f":
            return repeated_doubles(words[0], words[1], times)
        if len(words) == 1 and _product_fits(words[0], times):
            return (words[0] * times,)
        low, high = self.widened(words) if len(words) == 1 else words
        out = np.empty_like(low), np.empty_like(low)
        joining().repeat_wide(low, high, times, *out)
        return out

    def grows(self, kind: Kind) -> bool:
        return kind is not Kind.DOUBLE

    def bound(self, rows: int, low: int, high: int) -> int:
        return rows * max(abs(low), abs(high))

    def widened(self, words: Words) -> Words:
        return words[0], words[0] >> 63


def repeated_doubles(value: Array, rest: Array, times: Array) -> Words:
    """Sums of two doubles, times how often."""
    import numpy as np

    out = np.empty_like(value), np.empty_like(value)
    joining().repeat_double(value, rest, times, *out)
    return out


def _product_fits(sums: Array, times: Array) -> bool:
    """Whether no product can leave one word."""
    if not len(sums):
        return True
    return max(abs(int(sums.min())), abs(int(sums.max()))) * int(times.max()) < BOUND


SUMMED = Summed()


class Sum(AggregateFunction):
    name = "sum"
    needs = (SUMMED,)

    def result(self, argument: Type) -> Type | None:
        if not argument.numeric:
            return None
        return DOUBLE if argument.kind is Kind.DOUBLE else BIGINT

    def finish(self, kept: Kept) -> FinishedValues:
        words = kept.words(SUMMED)
        if words[0].dtype.kind == "f":
            return FinishedValues(as_doubles(words), kept.valid)
        if len(words) == 2:
            outside = words[1] != words[0] >> 63
            if outside.any():
                hint = "use avg, sum a DOUBLE, or filter the large values"
                raise OutOfRange(int(outside.argmax()), "leaves BIGINT", hint)
        return FinishedValues(words[0], kept.valid)


class Average(AggregateFunction):
    name = "avg"
    needs = (SUMMED,)

    def result(self, argument: Type) -> Type | None:
        return DOUBLE if argument.numeric else None

    def finish(self, kept: Kept) -> FinishedValues:
        import numpy as np

        with np.errstate(all="ignore"):
            return FinishedValues(as_doubles(kept.words(SUMMED)) / kept.count, kept.valid)


def as_doubles(words: Words) -> Array:
    """Sums of either form, rounded once."""
    import numpy as np

    if words[0].dtype.kind == "f":
        return np.where(np.isfinite(words[0]), words[0] + words[1], words[0])
    narrow = words[0].astype(np.float64)
    if len(words) == 1:
        return narrow
    wide = words[1].astype(np.float64) * 2.0**64 + words[0].view(np.uint64).astype(np.float64)
    # The two words of a small negative sum would cancel; it fits the low word alone.
    return np.where(words[1] == words[0] >> 63, narrow, wide)


SUM, AVERAGE = Sum(), Average()
