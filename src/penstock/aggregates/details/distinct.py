"""DISTINCT: any plain function, of each value of a group once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.aggregates.base import BOUND, Accumulator, AggregateFunction, Facts, FinishedValues, Kept, kernels
from penstock.aggregates.count import COUNT
from penstock.aggregates.details.function import DetailFunction, DetailRows, Parameter
from penstock.logical.types import Kind, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array, Words

VALUE = ""  # the column that the values are called while they are folded


@dataclass(frozen=True)
class Distinct(DetailFunction):
    """`plain` of the values of a group, each once."""

    plain: AggregateFunction

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.plain.name

    @property
    def wants(self) -> str:  # type: ignore[override]
        return self.plain.wants

    def result(self, argument: Type) -> Type | None:
        return self.plain.result(argument)

    def squeeze(self, rows: DetailRows) -> DetailRows:
        """A count needs one row for each group."""
        import numpy as np

        if self.plain is not COUNT or not len(rows):
            return rows
        groups, first, where = np.unique(rows.at, return_index=True, return_inverse=True)
        weights = np.bincount(where, rows.weights).astype(np.int64)
        return DetailRows(groups, rows.numbers[first], rows.counts[first], weights, {})

    def reduce(self, rows: DetailRows, groups: int, argument: Type, parameters: Sequence[Parameter]) -> FinishedValues:
        import numpy as np

        number = np.bincount(rows.at, rows.weights, groups).astype(np.int64)
        if self.plain is COUNT:
            return FinishedValues(number)
        valid = number > 0
        states = {one.state(VALUE): _folded(one, rows, groups, argument.kind) for one in self.plain.needs}
        return self.plain.finish(Kept(VALUE, number, None if valid.all() else valid, states))


def _folded(accumulator: Accumulator, rows: DetailRows, groups: int, kind: Kind) -> Words:
    """The states of the groups after all values of these rows."""
    import numpy as np

    from penstock.aggregates.values import EVERYTHING, Into, Values

    facts, n = Facts(kind), len(rows)
    if n and accumulator.grows(kind):
        reach = accumulator.bound(n, int(rows.numbers.min()), int(rows.numbers.max()))
        facts = replace(facts, wide=reach >= BOUND)
    table = np.empty((groups, accumulator.words(facts)), np.int64)
    table[:] = accumulator.fresh(facts)
    into = table.view(np.float64) if accumulator.floating(facts) else table
    floats, rest = _doubles(rows.numbers, kind) if kind is Kind.DOUBLE or accumulator.measures else (None, None)
    where = Into((into, 0, rows.at, 0, n), np.arange(n, dtype=np.int32))
    accumulator.fold(where, facts, Values(rows.numbers, EVERYTHING, floats, rest), None)
    return tuple(np.ascontiguousarray(into[:, word]) for word in range(into.shape[1]))


def _doubles(numbers: Array, kind: Kind) -> tuple[Array, Array | None]:
    """Canonical numbers as doubles, and what those lack of large integers."""
    import numpy as np

    from penstock.aggregates.values import measured

    if kind is not Kind.DOUBLE:
        return measured(numbers)
    floats = np.empty(len(numbers), np.float64)
    kernels().from_order_bits(numbers, floats)
    return floats, None
