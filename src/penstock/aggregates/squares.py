"""The sum of squares: how far estimates made of picks may be off (`runtime.merge.estimates.errors`).

It is folded where records are picks alone. Tasks that read all records of their range keep nothing of it, and what is
not there is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.aggregates.base import Accumulator, Facts, kernels
from penstock.aggregates.sum import repeated_doubles

if TYPE_CHECKING:
    from penstock.aggregates.base import Array, Words
    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary


class Squared(Accumulator):
    """The sum of the squares of the values, in two doubles."""

    kind = "squares"
    measures = True
    picked = True

    def words(self, facts: Facts) -> int:
        return 2

    def floating(self, facts: Facts) -> bool:
        return True

    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        import numpy as np

        assert values.floats is not None
        with np.errstate(over="ignore", invalid="ignore"):
            squares = values.floats * values.floats
        kernels().add_float(*into.words, into.rows, squares, values.valid)

    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        kernels().add_float_partial(*into.words, *words)

    def repeated(self, words: Words, times: Array) -> Words:
        return repeated_doubles(words[0], words[1], times)


SQUARED = Squared()
