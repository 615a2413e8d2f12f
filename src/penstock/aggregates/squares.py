"""Sums of products: how far estimates made of picks may be off (`runtime.merge.estimates.errors`).

A pick adds to a group once. Of a stream alone it has one value there; joined with several rows of a table it has the
sum of their values, and several of them. Sums are folded where records are picks alone. Tasks that read all records of
their range keep nothing of them, and what is not there is zero.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from penstock.aggregates.base import Accumulator, Facts, kernels
from penstock.aggregates.sum import repeated_doubles

if TYPE_CHECKING:
    from penstock.aggregates.base import Array, Words
    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary


class Product(Accumulator):
    """A sum over picks, in two doubles."""

    picked = True

    @abstractmethod
    def of(self, totals: Array, values: Array) -> Array:
        """What picks add that have so many values, and these in all."""

    def words(self, facts: Facts) -> int:
        return 2

    def floating(self, facts: Facts) -> bool:
        return True

    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        import numpy as np

        once = np.ones(len(values.numbers))
        with np.errstate(over="ignore", invalid="ignore"):
            products = self.of(once if values.floats is None else values.floats, once)
        kernels().add_float(*into.words, into.rows, products, values.valid)

    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        kernels().add_float_partial(*into.words, *words)

    def repeated(self, words: Words, times: Array) -> Words:
        return repeated_doubles(words[0], words[1], times)


class Squared(Product):
    """Of the total of a pick by itself."""

    kind = "squares"
    measures = True

    def of(self, totals: Array, values: Array) -> Array:
        products: Array = totals * totals
        return products


class Crossed(Product):
    """Of the total of a pick by how many values it has: what the residuals of a mean need, of joined rows."""

    kind = "products"
    measures = True

    def of(self, totals: Array, values: Array) -> Array:
        products: Array = totals * values
        return products


class Repeated(Product):
    """Of how many values a pick has by itself."""

    kind = "repeats"

    def of(self, totals: Array, values: Array) -> Array:
        products: Array = values * values
        return products


SQUARED, CROSSED, REPEATED = Squared(), Crossed(), Repeated()
