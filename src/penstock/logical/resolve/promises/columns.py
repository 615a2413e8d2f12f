"""The columns that LIMIT DELAY TO adds.

    SELECT src, count(*) AS n ...    ─►    src, n, exact_n, estimated_n, error_n
    SELECT src, bytes ...            ─►    src, bytes, weight

They depend on the text alone: they are there also where nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from penstock.aggregates.extremes import MAX, MIN
from penstock.aggregates.registry import AGGREGATES
from penstock.lang.ast import Item, Select, span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import ERROR, ESTIMATED, EXACT, Aggregate, Expression, Triaged, walk
from penstock.logical.query import OutputColumn
from penstock.logical.resolve.grouping import Grouping
from penstock.logical.resolve.scopes import StreamColumns
from penstock.logical.types import DOUBLE
from penstock.logical.values.aggregates import is_aggregate
from penstock.logical.window import Window

WEIGHT_NAME = "weight"
# Some records of a group say what all count and add up to, but not which values all have.
_OF_ALL_VALUES = frozenset({"entropy", "frequent", "approx_frequent", "approx_count_distinct"})


def check_estimable(select: Select, window: Window, text: AppText) -> None:
    """Whether the query's window is ever due, and its aggregates can be told from some of the records."""
    if select.delay is None:
        return
    if window.whole:
        hint = "results are due so long after its end: add one like [RANGE '5 minutes']"
        raise text.error(select.delay.span, "LIMIT DELAY TO needs a window", hint)
    listed = [item.expression for item in select.items]
    nodes = [*listed, *([select.having] if select.having else []), *(entry.expression for entry in select.order)]
    for call in (call for node in nodes for call in node.find_all(exp.Anonymous)):
        if not is_aggregate(call.name) or "extract" in call.meta:
            continue
        function = AGGREGATES[call.name.lower()]
        distinct = call.meta.get("distinct") is not None and function not in (MIN, MAX)
        if distinct or function.name in _OF_ALL_VALUES:
            what = f"{call.name.lower()}{' of DISTINCT values' if distinct else ''}"
            fact = f"{what} cannot be estimated from some of the records, as LIMIT DELAY TO may need"
            hint = "rare values may all be unread: ask for it in a query without LIMIT DELAY TO"
            raise text.error(span_of(call), fact, hint)


def promised_outputs(
    select: Select, outputs: tuple[OutputColumn, ...], grouping: Grouping, columns: StreamColumns, per_tuple: bool
) -> tuple[OutputColumn, ...]:
    """The columns of the result, given those of the select list. Where records are not grouped, each that was read says
    how many it stands for; that is one more key."""
    if select.delay is None:
        return outputs
    items = list(zip(select.items, outputs, strict=True))
    taken = {output.name.casefold() for output in outputs}
    if per_tuple:
        grouping.add(columns.weight)
        weight = OutputColumn(WEIGHT_NAME, columns.weight)
        same = (item for item, output in items if output.name.casefold() == WEIGHT_NAME)
        _check_free(taken, [weight], next(same, select.items[0]), columns.text)
        return (*outputs, weight)
    found: list[OutputColumn] = []
    for item, output in items:
        added = list(_triaged(output))
        _check_free(taken, added, item, columns.text)
        found += [output, *added]
    return tuple(found)


def _triaged(output: OutputColumn) -> Iterable[OutputColumn]:
    """Of a column that is made of aggregates: its value over what was read, what is estimated, and the error."""
    of: Expression = output.expression
    if any(isinstance(part, Aggregate) for part in walk(of)):
        for what in (EXACT, ESTIMATED, ERROR):
            yield OutputColumn(f"{what}_{output.name}", Triaged(of, what, DOUBLE if what == ERROR else of.type))


def _check_free(taken: set[str], added: Iterable[OutputColumn], item: Item, text: AppText) -> None:
    for output in added:
        if output.name.casefold() in taken:
            span = item.alias.span if item.alias else item.span
            fact = f"LIMIT DELAY TO adds a column '{output.name}', and there is one already"
            raise text.error(span, fact, "choose another name with AS")
