"""min and max, of any type that has an order.

The state is a number in the engine's order. Of strings it is a code of their dictionary, of IPv6 addresses 2**32 and
a code; −1 stands for no value there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.aggregates.base import IPV6, Accumulator, AggregateFunction, Facts, FinishedValues, Kept, kernels
from penstock.logical.types import Kind, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array, Words
    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary

CODE_BASES = {Kind.STRING: 0, Kind.INET: IPV6}


@dataclass(frozen=True)
class Extreme(Accumulator):
    """The least (`sign` −1) or greatest (1) value."""

    kind: str
    sign: int

    def words(self, facts: Facts) -> int:
        return 1

    def code_base(self, kind: Kind) -> int | None:
        return CODE_BASES.get(kind)

    def fresh(self, facts: Facts) -> list[int]:
        if self.code_base(facts.kind) is not None:
            return [-1]
        return [-(1 << 63) if self.sign > 0 else (1 << 63) - 1]

    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        self._fold(into, facts, values.numbers, values.valid, dictionary)

    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        self._fold(into, facts, words[0], into.everything, dictionary)

    def _fold(self, into: Into, facts: Facts, numbers: Array, valid: Array, dictionary: Dictionary | None) -> None:
        fold, where = kernels(), (*into.words, into.rows)
        if dictionary is not None:
            extreme = fold.fold_string if facts.kind is Kind.STRING else fold.fold_address
            extreme(*where, numbers, valid, dictionary.offsets, dictionary.data, self.sign)
        else:
            (fold.fold_max if self.sign > 0 else fold.fold_min)(*where, numbers, valid)


LEAST, GREATEST = Extreme("min", -1), Extreme("max", 1)


@dataclass(frozen=True)
class ExtremeOf(AggregateFunction):
    name: str
    needs: tuple[Extreme]

    def result(self, argument: Type) -> Type | None:
        return argument

    def finish(self, kept: Kept) -> FinishedValues:
        (extreme,) = self.needs
        (numbers,) = kept.words(extreme)
        return FinishedValues(numbers, kept.valid, canonical=True)


MIN, MAX = ExtremeOf("min", (LEAST,)), ExtremeOf("max", (GREATEST,))
