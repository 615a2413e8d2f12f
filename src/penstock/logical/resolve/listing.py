"""Aggregates that give rows (`frequent`): where they may stand."""

from __future__ import annotations

from penstock.aggregates.registry import function_of, parameters_of
from penstock.lang.ast import Select, span_of
from penstock.lang.text import AppText, Span
from penstock.logical.expressions import Aggregate, Expression, Listed, children
from penstock.logical.query import Order, OutputColumn
from penstock.logical.resolve.grouping import Grouping


def check_listed(
    select: Select,
    outputs: tuple[OutputColumn, ...],
    having: Expression | None,
    order: tuple[Order, ...],
    grouping: Grouping,
    text: AppText,
) -> None:
    """One at most, as an item of the select list by itself; a bound on its memory only without GROUP BY."""
    places: list[tuple[Expression, Span]] = []
    at = iter(select.items)
    shown: set[Aggregate] = set()
    for output in outputs:
        expression = output.expression
        if isinstance(expression, Listed) and expression.aggregate in shown:
            continue  # the second and third column of an item
        item = next(at)
        if isinstance(expression, Listed):
            shown.add(expression.aggregate)
            _check_one(expression.aggregate, item.span, len(shown), grouping, text)
        places.append((expression, item.span))
    if having is not None and select.having is not None:
        places.append((having, span_of(select.having)))
    places += [(entry.expression, span_of(select.order[0].expression)) for entry in order]
    for expression, span in places:
        inside = _inside(expression)
        if inside is not None:
            hint = f"select it, {inside.function}(...) AS f, and use f, count_f and undercount_f here"
            raise text.error(span, f"{inside.function} gives rows: it is an item of the select list by itself", hint)


def _check_one(aggregate: Aggregate, span: Span, number: int, grouping: Grouping, text: AppText) -> None:
    if number > 1:
        hint = "ask for the other in a query of its own: both share what they can"
        raise text.error(span, f"a query can list rows of one {aggregate.function} only", hint)
    if parameters_of(aggregate)[-1] and grouping.attributes:
        hint = "give an error in place of the memory, or leave GROUP BY away"
        raise text.error(span, "a bound on the memory is for a query without GROUP BY", hint)


def _inside(expression: Expression) -> Aggregate | None:
    """An aggregate that gives rows, inside something else."""
    if isinstance(expression, Listed):
        return None
    if isinstance(expression, Aggregate) and function_of(expression).lists:
        return expression
    return next((found for child in children(expression) if (found := _inside(child)) is not None), None)
