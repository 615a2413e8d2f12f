"""How far estimates may be off: one standard error, group by group.

Of the n picks of a step 2^k in a window, those of a group have values y, all others count as 0. With S = Σy and
Q = Σy² the variance of 2^k·S is 2^k (2^k − 1) (Q − S²/n) n/(n − 1), and steps add up: the picks of one say nothing of
those of another. A mean R is a ratio, and y its residuals y − R (delta method).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.count import COUNT, COUNTED
from penstock.aggregates.registry import function_of
from penstock.aggregates.squares import CROSSED, REPEATED, SQUARED
from penstock.aggregates.sum import AVERAGE, SUM, SUMMED, as_doubles
from penstock.logical.expressions import Aggregate, Expression
from penstock.logical.query import WEIGHT, column_of
from penstock.runtime.expressions.evaluate import Operand
from penstock.runtime.merge.estimates.picks import WindowPicks
from penstock.runtime.merge.estimates.weights import PickedRows
from penstock.state.segments.groups import Groups

Array = np.ndarray
ADDING = (COUNT, SUM)  # what is read and what is estimated add up


def adds(expression: Expression) -> bool:
    """Whether an expression is a sum over records."""
    return isinstance(expression, Aggregate) and not expression.distinct and function_of(expression) in ADDING


@dataclass(frozen=True)
class Errors:
    """Of these groups. `picked`: None where all their records were read."""

    groups: Groups
    picked: PickedRows | None
    picks: WindowPicks

    def of(self, expression: Expression, value: Operand, records: Array) -> Operand:
        """The error of an aggregate whose estimate is `value`, of so many `records` by estimate; NULL where there is
        none."""
        known = adds(expression) or (isinstance(expression, Aggregate) and function_of(expression) is AVERAGE)
        nothing = np.zeros(len(self.groups))
        if not known or not isinstance(expression, Aggregate) or expression.distinct:
            return Operand(nothing, np.zeros(len(nothing), bool))
        there = ~self.picks.lost(self.groups.panes)
        there = there if value.valid is None else there & value.valid
        if self.picked is None:
            return Operand(nothing, there)
        mean = value.values if function_of(expression) is AVERAGE else None
        variance, sound = self._variance(self.picked, expression, mean)
        with np.errstate(all="ignore"):
            error = np.sqrt(variance) if mean is None else np.sqrt(variance) / records
        return Operand(error, there & sound)

    def _variance(self, picked: PickedRows, aggregate: Aggregate, mean: Array | None) -> tuple[Array, Array]:
        """By group, and whether it is known: of one pick it is not."""
        groups, weights = len(self.groups), picked.weights.astype(np.float64)
        n = self.picks.number(picked.rows.panes, picked.weights).astype(np.float64)
        found = _sums(picked, aggregate)
        total, squares = found.total, found.squares
        with np.errstate(all="ignore"):
            if mean is not None:
                at = mean[picked.at]
                total, squares = total - at * found.count, squares - 2 * at * found.crossed + at * at * found.repeats
            spread = np.maximum(0.0, squares - total * total / n) * n / (n - 1)
            variance = np.bincount(picked.at, weights * (weights - 1) * spread, groups)
        alone = np.bincount(picked.at, n <= 1, groups) > 0
        return variance, ~alone


@dataclass(frozen=True)
class _Sums:
    """Over the picks of each row, of which one has the total y of m values: Σy, Σy², Σm, Σym, Σm²."""

    total: Array
    squares: Array
    count: Array
    crossed: Array
    repeats: Array


def _sums(picked: PickedRows, aggregate: Aggregate) -> _Sums:
    """A pick has one value, unless it is joined with several rows."""
    rows, records = picked.rows, picked.rows.count.astype(np.float64)
    if aggregate.argument is None:
        known = next((words for state, words in rows.states.items() if _of_weights(state)), None)
        repeats = records if known is None else as_doubles(known)
        return _Sums(records, repeats, records, repeats, repeats)
    column = column_of(aggregate.argument)
    counted = rows.states.get(COUNTED.state(column))
    count = records if counted is None else counted[0].astype(np.float64)
    repeats = _known(rows, REPEATED.state(column), count)
    if function_of(aggregate) is COUNT:
        return _Sums(count, repeats, count, repeats, repeats)
    total, squares = as_doubles(rows.states[SUMMED.state(column)]), as_doubles(rows.states[SQUARED.state(column)])
    return _Sums(total, squares, count, _known(rows, CROSSED.state(column), total), repeats)


def _known(rows: Groups, state: State, otherwise: Array) -> Array:
    words = rows.states.get(state)
    return otherwise if words is None else as_doubles(words)


def _of_weights(state: State) -> bool:
    return state.kind == REPEATED.kind and state.column.endswith(WEIGHT.name)


def added(whole: Operand, read: Operand) -> Operand:
    """What was added to what was read."""
    with np.errstate(all="ignore"):
        more = whole.values - read.values
    if more.dtype.kind == "f":
        more = np.where(whole.values == read.values, 0.0, more)
    return Operand(more, whole.valid)
