"""Variances and standard deviations, of a sample or of a population.

The state is the number of values, their mean and the sum of their squared deviations from it, the latter two in two
doubles each: stable, and the order of records and merges does not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.aggregates.base import Accumulator, AggregateFunction, Facts, FinishedValues, Kept, kernels
from penstock.aggregates.sum import repeated_doubles
from penstock.logical.types import DOUBLE, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array, Words
    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary


class Moments(Accumulator):
    """Number, mean and squared deviations of the values."""

    kind = "moments"
    measures = True

    def words(self, facts: Facts) -> int:
        return 5

    def floating(self, facts: Facts) -> bool:
        return True

    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        import numpy as np

        assert values.floats is not None
        rest = np.empty(0) if values.rest is None else values.rest
        kernels().add_moments(*into.words, into.rows, values.floats, rest, values.valid)

    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        kernels().add_moments_partial(*into.words, *words)

    def repeated(self, words: Words, times: Array) -> Words:
        n, mean, rest, squares, lost = words
        return (n * times, mean, rest, *repeated_doubles(squares, lost, times))


MOMENTS = Moments()


@dataclass(frozen=True)
class Variance(AggregateFunction):
    """`sample`: over one less than the number of values, and NULL for one value; `root`: the standard deviation."""

    name: str
    sample: bool
    root: bool
    aliases: tuple[str, ...] = ()
    needs = (MOMENTS,)

    def result(self, argument: Type) -> Type | None:
        return DOUBLE if argument.numeric else None

    def finish(self, kept: Kept) -> FinishedValues:
        import numpy as np

        n, _, _, squares, rest = kept.words(MOMENTS)
        over = n - 1 if self.sample else n
        valid = over > 0
        with np.errstate(all="ignore"):
            variance = (squares + rest) / np.where(valid, over, 1)
        return FinishedValues(np.sqrt(variance) if self.root else variance, None if valid.all() else valid)


VARIANCES = (
    Variance("var_samp", sample=True, root=False, aliases=("variance",)),
    Variance("var_pop", sample=False, root=False),
    Variance("stddev_samp", sample=True, root=True, aliases=("stddev",)),
    Variance("stddev_pop", sample=False, root=True),
)
