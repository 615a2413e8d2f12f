"""All aggregate functions by name, and all accumulators by kind. To add a function: its module, and a line here."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.aggregates.base import Accumulator, AggregateFunction, Facts, State
from penstock.aggregates.count import COUNT, COUNTED
from penstock.aggregates.extremes import MAX, MIN
from penstock.aggregates.moments import VARIANCES
from penstock.aggregates.sum import AVERAGE, SUM
from penstock.logical.expressions import Aggregate
from penstock.logical.types import Kind

# In the order in which messages list them.
FUNCTIONS: tuple[AggregateFunction, ...] = (
    COUNT,
    SUM,
    AVERAGE,
    MIN,
    MAX,
    *VARIANCES,
)
AGGREGATES: dict[str, AggregateFunction] = {
    name: function for function in FUNCTIONS for name in (*function.aliases, function.name)
}
ACCUMULATORS: dict[str, Accumulator] = {
    one.kind: one for one in (COUNTED, *(need for function in FUNCTIONS for need in function.needs))
}


def accumulator_of(state: State) -> Accumulator:
    return ACCUMULATORS[state.kind]


def states_of(aggregates: Iterable[Aggregate]) -> tuple[State, ...]:
    """The states that these aggregates need, each once. All of a column need the number of its values."""
    needed: dict[State, None] = {}
    for aggregate in aggregates:
        if aggregate.argument is not None:
            for one in (COUNTED, *AGGREGATES[aggregate.function].needs):
                needed[one.state(aggregate.argument.name)] = None
    return tuple(needed)


def planned_words(state: State, kind: Kind) -> int:
    """Words of a state in a row, as long as it has met no NULL and nothing that makes it wide."""
    return accumulator_of(state).words(Facts(kind))
