"""How far estimates may be off: one standard error, group by group.

Of the n picks of a step 2^k in a window, those of a group have values y, all others count as 0. With S = Σy and
Q = Σy² the variance of 2^k·S is 2^k (2^k − 1) (Q − S²/n) n/(n − 1), and steps add up: the picks of one say nothing of
those of another. A mean R is a ratio, and y its residuals y − R (delta method).

Of an expression that adds several up, y is what all of them add. Its square needs products of one with the other:
those of counts and sums of one column are known, as 1·y = y. Of two columns they are not, and of joined rows, of which
a pick may have several, neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.count import COUNT, COUNTED, kept_of
from penstock.aggregates.registry import function_of
from penstock.aggregates.squares import CROSSED, REPEATED, SQUARED
from penstock.aggregates.sum import SUM, SUMMED, as_doubles
from penstock.logical.expressions import Aggregate, Expression
from penstock.logical.query import WEIGHT, column_of
from penstock.runtime.expressions.evaluate import Operand, Scope, evaluate
from penstock.runtime.expressions.operands import both
from penstock.runtime.merge.estimates.linear import Linear, linear
from penstock.runtime.merge.estimates.picks import WindowPicks
from penstock.runtime.merge.estimates.weights import PickedRows
from penstock.state.segments.groups import Groups

Array = np.ndarray
RECORDS = "records"


def adds(expression: Expression) -> bool:
    """Whether an expression is a sum over records."""
    found = linear(expression)
    return found is not None and found.adds


@dataclass(frozen=True)
class Errors:
    """Of these groups. `picked`: None where all their records were read; `joined`: a record may have several rows."""

    groups: Groups
    picked: PickedRows | None
    picks: WindowPicks
    joined: bool = False

    def of(self, expression: Expression, scope: Scope, whole: Groups) -> Operand:
        """The error of what an expression is by estimate, in a scope of `whole` groups; NULL where there is none."""
        nothing, made = np.zeros(len(self.groups)), linear(expression)
        if made is None or not self._known(made):
            return Operand(nothing, np.zeros(len(nothing), bool))
        value, there = evaluate(expression, scope), ~self.picks.lost(self.groups.panes)
        there = there if value.valid is None else there & value.valid
        if self.picked is None:
            return Operand(nothing, there)
        if made.adds:
            error, sound = self._of_total(self.picked, made)
        else:
            error, sound = self._of_mean(self.picked, made, scope, whole)
        return Operand(error, there & sound)

    def _known(self, made: Linear) -> bool:
        """Whether all products are stored that its error needs."""
        if len(made.factors) == 1:
            return True
        columns = {(one.argument, one.test) for one in made.factors if one.argument is not None}
        return made.adds and len(columns) <= 1 and not self.joined

    def _of_total(self, picked: PickedRows, made: Linear) -> tuple[Array, Array]:
        total, squares = _added_up(picked, made.factors)
        variance, sound = self._variance(picked, total, squares)
        return np.sqrt(variance), sound

    def _of_mean(self, picked: PickedRows, made: Linear, scope: Scope, whole: Groups) -> tuple[Array, Array]:
        ((aggregate, factor),) = made.factors.items()
        found, at = _sums(picked, aggregate), evaluate(aggregate, scope).values[picked.at]
        with np.errstate(all="ignore"):
            total = found.total - at * found.count
            squares = found.squares - 2 * at * found.crossed + at * at * found.repeats
        variance, sound = self._variance(picked, total, squares)
        assert aggregate.argument is not None
        records = kept_of(column_of(aggregate.argument), whole.count, whole.states).count
        with np.errstate(all="ignore"):
            return abs(factor) * (np.sqrt(variance) / records), sound

    def _variance(self, picked: PickedRows, total: Array, squares: Array) -> tuple[Array, Array]:
        """By group, and whether it is known: of one pick it is not."""
        groups, weights = len(self.groups), picked.weights.astype(np.float64)
        n = self.picks.number(picked.rows.panes, picked.weights).astype(np.float64)
        with np.errstate(all="ignore"):
            spread = np.maximum(0.0, squares - total * total / n) * n / (n - 1)
            variance = np.bincount(picked.at, weights * (weights - 1) * spread, groups)
        alone = np.bincount(picked.at, n <= 1, groups) > 0
        return variance, ~alone


def _added_up(picked: PickedRows, factors: Mapping[Aggregate, float]) -> tuple[Array, Array]:
    """Σy and Σy² over the picks of each row, y being all that one adds."""
    with np.errstate(all="ignore"):
        if len(factors) == 1:
            ((aggregate, factor),) = factors.items()
            found = _sums(picked, aggregate)
            return factor * found.total, factor * factor * found.squares
        return _of_one_column(picked, factors)


def _of_one_column(picked: PickedRows, factors: Mapping[Aggregate, float]) -> tuple[Array, Array]:
    """The same of several: of records, of values of one column that are there, and of these values. What a record or
    value is counted for is 1, so each of the products is one of the sums."""
    totals, squares, each = np.zeros(len(picked)), np.zeros(len(picked)), dict[str, tuple[float, _Sums]]()
    for aggregate, factor in factors.items():
        kind = RECORDS if aggregate.argument is None else function_of(aggregate).name
        each[kind] = factor, _sums(picked, aggregate)
    order = [kind for kind in (RECORDS, COUNT.name, SUM.name) if kind in each]
    for place, kind in enumerate(order):
        factor, found = each[kind]
        totals, squares = totals + factor * found.total, squares + factor * factor * found.squares
        for before in order[:place]:
            squares = squares + 2 * factor * each[before][0] * found.total
    return totals, squares


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
        more, valid = whole.values - read.values, both(whole.valid, read.valid)
    if more.dtype.kind == "f":
        return Operand(np.where(whole.values == read.values, 0.0, more), valid)
    beyond = ((whole.values ^ read.values) & (whole.values ^ more)) < 0
    return Operand(more, both(valid, ~beyond) if beyond.any() else valid)
