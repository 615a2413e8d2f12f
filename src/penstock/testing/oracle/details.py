"""Aggregates of details in plain Python, from the list of a group's values: the oracle's own.

Nothing is shared with the engine: counts by `Counter`, ranks by `Fraction`, buckets by `math.frexp`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from penstock.logical.expressions import Aggregate
from penstock.logical.types import Kind
from penstock.testing.oracle.sums import SPREADS, average, spread, total

NAMES = ("entropy", "percentile", "median", "approx_percentile")


def is_detailed(aggregate: Aggregate) -> bool:
    return aggregate.distinct or aggregate.function in NAMES


def result_of(aggregate: Aggregate, values: Sequence[Any]) -> Any:
    """What an aggregate makes of the values of a group that are not NULL; None is NULL."""
    found = [_canonical(value) for value in values]
    if aggregate.distinct:
        return _distinct(aggregate)(list(Counter(found)))
    if not found:
        return None
    if aggregate.function == "entropy":
        return entropy(found)
    share = Fraction(repr(aggregate.parameters[0].value)) if aggregate.parameters else Fraction(1, 2)
    ranked = sorted(found, key=lambda value: (isinstance(value, str), value))  # NaN stands above every number
    chosen = ranked[max(1, math.ceil(share * len(ranked))) - 1]
    if aggregate.function != "approx_percentile":
        return math.nan if chosen == NAN else chosen
    accuracy = aggregate.parameters[1].value if len(aggregate.parameters) > 1 else 0.01
    assert isinstance(accuracy, int | float)
    return math.nan if chosen == NAN else bucket_middle(float(chosen), accuracy)


NAN = "NaN"  # all NaNs are one value here, which a dictionary takes


def _canonical(value: Any) -> Any:
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    return value


def _distinct(aggregate: Aggregate) -> Callable[[Sequence[Any]], Any]:
    if aggregate.function == "count":
        return len
    assert aggregate.argument is not None
    double = aggregate.argument.type.kind is Kind.DOUBLE

    def computed(values: Sequence[Any]) -> Any:
        numbers = [math.nan if value == NAN else value for value in values]
        if not numbers:
            return None
        if aggregate.function in SPREADS:
            return spread(aggregate.function, numbers)
        if aggregate.function == "sum":
            return total(numbers) if double else sum(numbers)
        return average(numbers) if double else sum(numbers) / len(numbers)

    return computed


def entropy(values: Sequence[Any]) -> float:
    """In bits.

    >>> entropy(["a", "b", "a", "b"]), entropy([7, 7])
    (1.0, 0.0)
    """
    counts, number = Counter(values).values(), len(values)
    return math.fsum(count / number * math.log2(number / count) for count in counts)


def bucket_middle(value: float, accuracy: float) -> float:
    """The middle of the numbers that share sign, exponent and leading digits with a value.

    >>> bucket_middle(1000.0, 0.01), bucket_middle(-3.0, 0.5), bucket_middle(0.0, 0.01)
    (1004.0, -3.0, 0.0)
    """
    if value == 0 or math.isinf(value):
        return value
    digits = next(k for k in range(53) if 2.0 ** -(k + 1) <= accuracy)
    part, exponent = math.frexp(abs(value))  # from a half to one
    step = 2.0 ** -(digits + 1)
    low = math.floor(part / step) * step
    middle = math.ldexp(low, exponent) / 2 + math.ldexp(math.nextafter(low + step, 0), exponent) / 2
    return math.copysign(middle, value)
