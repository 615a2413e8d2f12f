"""Sums, averages and variances of numbers in plain Python, correctly rounded: the oracle's own arithmetic.

Doubles are fractions with powers of two below the line, so that sums and sums of squares are exact integers; only
the last step rounds.  Infinities and NaN give what a plain sum gives, and NaN for every variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Number = int | float

SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")


def total(values: Sequence[float]) -> float:
    """The sum, rounded once.

    >>> total([0.1] * 10), total([math.inf, -math.inf, 1.0])
    (1.0, nan)
    """
    try:
        return math.fsum(values)
    except (ValueError, OverflowError):  # infinities of both signs, or beyond the largest double
        return sum(values)


def average(values: Sequence[float]) -> float:
    return total(values) / len(values)


def spread(function: str, values: Sequence[Number]) -> float | None:
    """Variance or standard deviation, of a sample (`_samp`: None for one value) or a population (`_pop`).

    >>> spread("var_samp", [1, 2, 4]), spread("stddev_pop", [1.0, 3.0]), spread("var_samp", [7])
    (2.3333333333333335, 1.0, None)
    """
    count = len(values)
    divisor = count - 1 if function.endswith("_samp") else count
    if divisor == 0:
        return None
    if not all(math.isfinite(value) for value in values):
        return math.nan
    variance = _variance(values, divisor)
    return math.sqrt(variance) if function.startswith("stddev") else variance


def _variance(values: Sequence[Number], divisor: int) -> float:
    ratios = [value.as_integer_ratio() for value in values]
    scale = max(below for _, below in ratios)
    whole = [above * (scale // below) for above, below in ratios]
    count = len(whole)
    deviations = count * sum(number * number for number in whole) - sum(whole) ** 2
    try:
        return deviations / (count * divisor * scale * scale)
    except OverflowError:  # beyond the largest double
        return math.inf


def function_of(name: str) -> Callable[[Sequence[Number]], float | None]:
    """What an aggregate makes of the values of a group, of which there is at least one."""
    if name == "sum":
        return total
    return average if name == "avg" else lambda values: spread(name, values)
