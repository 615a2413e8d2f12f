"""All aggregate functions by name, and all accumulators by kind. To add a function: its module, and a line here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.aggregates.base import Accumulator, AggregateFunction, Facts, State
from penstock.aggregates.count import COUNT, COUNTED
from penstock.aggregates.details.buckets import APPROX_PERCENTILE
from penstock.aggregates.details.distinct import Distinct
from penstock.aggregates.details.entropy import ENTROPY
from penstock.aggregates.details.frequent import APPROX_FREQUENT, DROPPED, FREQUENT, SPARED
from penstock.aggregates.details.function import Detail, DetailFunction
from penstock.aggregates.details.percentiles import MEDIAN, PERCENTILE
from penstock.aggregates.details.registers import APPROX_COUNT_DISTINCT, REGISTERS
from penstock.aggregates.extremes import MAX, MIN
from penstock.aggregates.moments import VARIANCES
from penstock.aggregates.squares import CROSSED, REPEATED, SQUARED
from penstock.aggregates.sum import AVERAGE, SUM
from penstock.logical.expressions import Aggregate, Column, Computed, Prefix
from penstock.logical.types import Kind

# In the order in which messages list them.
FUNCTIONS: tuple[AggregateFunction, ...] = (
    COUNT,
    SUM,
    AVERAGE,
    MIN,
    MAX,
    *VARIANCES,
    ENTROPY,
    PERCENTILE,
    MEDIAN,
    APPROX_PERCENTILE,
    APPROX_COUNT_DISTINCT,
    FREQUENT,
    APPROX_FREQUENT,
)
AGGREGATES: dict[str, AggregateFunction] = {
    name: function for function in FUNCTIONS for name in (*function.aliases, function.name)
}
DISTINCTS: dict[str, DetailFunction] = {
    function.name: Distinct(function) for function in FUNCTIONS if not isinstance(function, DetailFunction)
}
_OF_DETAILS = (REGISTERS, SPARED, DROPPED)
ACCUMULATORS: dict[str, Accumulator] = {
    one.kind: one
    for one in (
        *(COUNTED, SQUARED, CROSSED, REPEATED, *_OF_DETAILS),
        *(need for function in FUNCTIONS for need in function.needs),
    )
}


def accumulator_of(state: State) -> Accumulator:
    return ACCUMULATORS[state.kind]


def function_of(aggregate: Aggregate) -> AggregateFunction:
    return DISTINCTS[aggregate.function] if aggregate.distinct else AGGREGATES[aggregate.function]


def states_of(aggregates: Iterable[Aggregate]) -> tuple[State, ...]:
    """The states that these aggregates need in groups, each once. All of a column need the number of its values;
    functions of details need none."""
    needed: dict[State, None] = {}
    for aggregate in aggregates:
        argument, function = aggregate.argument, function_of(aggregate)
        if argument is not None and not isinstance(function, DetailFunction):
            assert not isinstance(argument, Prefix)
            for one in (COUNTED, *function.needs):
                needed[one.state(argument.name)] = None
    return tuple(needed)


def squares_of(aggregates: Iterable[Aggregate], joined: bool) -> tuple[State, ...]:
    """What tells how well counts, sums and means of columns are estimated from picks; a pick that is `joined` may have
    several values."""
    needed: dict[State, None] = {}
    for aggregate in aggregates:
        argument, function = aggregate.argument, AGGREGATES[aggregate.function]
        if isinstance(argument, Column | Computed) and not aggregate.distinct:
            several = {COUNT: (REPEATED,), AVERAGE: (CROSSED, REPEATED)}.get(function, ()) if joined else ()
            once = (SQUARED,) if function in (SUM, AVERAGE) else ()
            needed |= dict.fromkeys(one.state(argument.name) for one in (*once, *several))
    return tuple(needed)


def listed_of(aggregates: Iterable[Aggregate]) -> Aggregate | None:
    """The one that gives rows, if there is one."""
    return next((one for one in aggregates if function_of(one).lists), None)


def detail_of(aggregate: Aggregate) -> Detail | None:
    """What an aggregate needs to know besides the groups of its query."""
    function, argument = function_of(aggregate), aggregate.argument
    if not isinstance(function, DetailFunction):
        return None
    assert argument is not None
    return function.detail(argument, parameters_of(aggregate))


def parameters_of(aggregate: Aggregate) -> tuple[Any, ...]:
    """The constants of a call, with those that were left away."""
    return function_of(aggregate).completed([parameter.value for parameter in aggregate.parameters])


def planned_words(state: State, kind: Kind, nullable: bool = False) -> int:
    """Words of a state in a row, as long as it has met nothing that makes it wide, and no NULL unless those are to be
    expected."""
    return accumulator_of(state).words(Facts(kind, nullable))
