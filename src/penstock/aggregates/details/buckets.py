"""approx_percentile: a percentile of values that are kept to a few digits.

A value is kept as the bucket of doubles that it falls into: sign, exponent and the first k bits of the mantissa. The
middle of a bucket is at most 2^−(k+1) of its value away from any number in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.aggregates.base import FinishedValues, ParameterRule, kernels
from penstock.aggregates.details.function import Detail, DetailFunction, DetailRows, Parameter
from penstock.aggregates.details.percentiles import SHARE, of_share
from penstock.logical.expressions import Call, Column, Computed, Literal, Prefix
from penstock.logical.render import render
from penstock.logical.types import BIGINT, DOUBLE, INT, Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array

MANTISSA = 52  # bits of a double
LEAST_NORMAL = 2.0**-1022  # below it a double has fewer digits, and stands for 0 here
ACCURACY = ParameterRule("accuracy", "a number from 0.000001 to 0.5", lambda value: 1e-6 <= value <= 0.5, 0.01)


def kept_bits(accuracy: float) -> int:
    """The least k with 2^−(k+1) ≤ accuracy.

    >>> kept_bits(0.01), kept_bits(0.5), kept_bits(1e-6)
    (6, 0, 19)
    """
    return next(k for k in range(MANTISSA) if 2.0 ** -(k + 1) <= accuracy)


class ApproxPercentile(DetailFunction):
    name = "approx_percentile"
    parameters = (SHARE, ACCURACY)

    def result(self, argument: Type) -> Type | None:
        return DOUBLE if argument.numeric else None

    def detail(self, argument: Column | Prefix | Computed, parameters: Sequence[Parameter]) -> Detail:
        value = argument.expression if isinstance(argument, Computed) else argument
        call = Call("order_bucket", (value, Literal(_bits(parameters), INT)), BIGINT)
        return Detail(Computed("=" + render(call), call, BIGINT))

    def reduce(self, rows: DetailRows, groups: int, argument: Type, parameters: Sequence[Parameter]) -> FinishedValues:
        share = parameters[0]
        assert isinstance(share, int | float)
        found, valid = of_share(rows, groups, share)
        return FinishedValues(middles(found, _bits(parameters)), valid)


def _bits(parameters: Sequence[Parameter]) -> int:
    accuracy = parameters[1]
    assert isinstance(accuracy, int | float)
    return kept_bits(accuracy)


def middles(buckets: Array, bits: int) -> Array:
    """The middle of each bucket; of those around 0 it is 0, infinities and NaN are themselves."""
    import numpy as np

    width = MANTISSA - bits
    ends = np.empty((2, len(buckets)))
    kernels().from_order_bits(buckets << width, ends[0])
    kernels().from_order_bits((buckets << width) + ((1 << width) - 1), ends[1])
    low, high = ends
    with np.errstate(all="ignore"):
        middle = np.where(np.abs(low) + np.abs(high) < 2 * LEAST_NORMAL, 0.0, low / 2 + high / 2)
    special = np.where(np.isinf(high) | np.isnan(low), high, low)
    return np.where(np.isfinite(low) & np.isfinite(high), middle, special)


APPROX_PERCENTILE = ApproxPercentile()
