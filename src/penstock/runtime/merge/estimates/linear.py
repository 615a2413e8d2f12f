"""Expressions that add up: `sum(bytes) * 8 + count(*) * 20`, a constant times each aggregate, and perhaps a constant.

What is read and what is estimated of counts and sums add up, so they do in such an expression. A mean is a ratio: it
does not add up, but its error goes with the constant in front of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from penstock.aggregates.count import COUNT
from penstock.aggregates.registry import function_of
from penstock.aggregates.sum import AVERAGE, SUM
from penstock.logical.expressions import Aggregate, Arithmetic, Cast, Expression, Literal
from penstock.logical.types import DOUBLE

ADDING = (COUNT, SUM)


@dataclass(frozen=True)
class Linear:
    """The factor of each aggregate, and what is added to them all."""

    factors: Mapping[Aggregate, float] = field(default_factory=dict)
    constant: float = 0.0

    @property
    def adds(self) -> bool:
        return all(function_of(one) in ADDING for one in self.factors)

    @property
    def sound(self) -> bool:
        return all(map(isfinite, self.factors.values()))

    def plus(self, other: Linear, sign: float) -> Linear:
        factors = dict(self.factors)
        for aggregate, factor in other.factors.items():
            factors[aggregate] = factors.get(aggregate, 0.0) + sign * factor
        return Linear(factors, self.constant + sign * other.constant)

    def times(self, factor: float) -> Linear:
        return Linear({one: factor * of for one, of in self.factors.items()}, factor * self.constant)


def linear(expression: Expression) -> Linear | None:
    """None: some aggregate of it is no count, sum or mean, or it is no sum of constants times these."""
    found = _linear(expression)
    return found if found is not None and found.factors and found.sound else None


def _linear(expression: Expression) -> Linear | None:
    match expression:
        case Aggregate(distinct=False) if function_of(expression) in (*ADDING, AVERAGE):
            return Linear({expression: 1.0})
        case Literal(value, kind) if kind.numeric and isinstance(value, int | float):
            return Linear(constant=_double(value))
        case Cast(operand, kind) if kind == DOUBLE and operand.type.numeric:
            return _linear(operand)
        case Arithmetic(operator, left, right):
            one, other = _linear(left), _linear(right)
            return None if one is None or other is None else _joined(operator, one, other)
    return None


def _joined(operator: str, one: Linear, other: Linear) -> Linear | None:
    match operator:
        case "+":
            return one.plus(other, 1.0)
        case "-":
            return one.plus(other, -1.0)
        case "*" if not one.factors:
            return other.times(one.constant)
        case "*" if not other.factors:
            return one.times(other.constant)
        case "/" if not other.factors and other.constant:
            return one.times(1 / other.constant)
    return None


def _double(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
