"""Aggregate functions: which there are, what they take and give.

To add one: an entry in `AGGREGATES` with its rule, its state in `kernels`, its final step in `runtime.merge.finish`,
and an example in the tests of `resolve`.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.lang.ast import Word, span_of
from penstock.logical.expressions import Aggregate, Case, Column, Computed, Expression, Literal, Prefix
from penstock.logical.render import render
from penstock.logical.types import BIGINT, DOUBLE, INT, Kind, Type
from penstock.logical.values.attributes import attribute_of
from penstock.logical.values.placed import Resolve, Scope, condition, not_yet
from penstock.logical.values.type_rules import is_null


def _any(argument: Type) -> Type:
    return BIGINT


def _sum(argument: Type) -> Type | None:
    if not argument.numeric:
        return None
    return DOUBLE if argument.kind is Kind.DOUBLE else BIGINT


def _average(argument: Type) -> Type | None:
    return DOUBLE if argument.numeric else None


def _extreme(argument: Type) -> Type | None:
    return argument


AGGREGATES: dict[str, Callable[[Type], Type | None]] = {
    "count": _any,
    "sum": _sum,
    "avg": _average,
    "min": _extreme,
    "max": _extreme,
    "variance": _average,
    "var_samp": _average,
    "var_pop": _average,
    "stddev": _average,
    "stddev_samp": _average,
    "stddev_pop": _average,
}
_CANONICAL = {"variance": "var_samp", "stddev": "stddev_samp"}
LATER = frozenset({"approx_count_distinct", "approx_percentile", "approx_frequent"})


def is_aggregate(name: str) -> bool:
    return name.lower() in AGGREGATES or name.lower() in LATER


def uses_aggregates(nodes: list[exp.Expr]) -> bool:
    calls = (call for node in nodes for call in node.find_all(exp.Anonymous))
    return any(is_aggregate(call.name) and "extract" not in call.meta for call in calls)


def resolve_aggregate(node: exp.Anonymous, filtered: exp.Expr | None, scope: Scope, resolve: Resolve) -> Aggregate:
    """`scope` is that of the tuples, for the argument and the condition of FILTER."""
    function = _function(node, scope)
    if len(node.expressions) != 1:
        raise scope.text.error(span_of(node), f"{function} takes one argument, not {len(node.expressions)}")
    argument = node.expressions[0]
    while isinstance(argument, exp.Paren):
        argument = argument.this
    test = None if filtered is None else condition(filtered, scope, "FILTER", resolve)
    if function == "count" and _counts_rows(argument, scope):
        return Aggregate("count", None if test is None else _when(test, Literal(1, INT)), BIGINT)
    value = _argument(function, argument, scope, resolve)
    result = AGGREGATES[function](value.type)
    if result is None:
        raise scope.text.error(span_of(argument), f"{function} needs numbers, but '{render(value)}' is {value.type}")
    wanted = _when(test, value) if test is not None else _attribute(value)
    if isinstance(wanted, Computed) and wanted.type.kind in (Kind.INET, Kind.PREFIX):
        raise not_yet(scope.text, node, f"{function} of computed addresses", f"use {function} of a column")
    return Aggregate(_CANONICAL.get(function, function), wanted, result)


def _function(node: exp.Anonymous, scope: Scope) -> str:
    """The function's name, or an error for one that comes later."""
    word: Word = node.meta["name"]
    function = word.text.lower()
    if function in LATER:
        hint = f"there are {', '.join(AGGREGATES)}"
        raise scope.text.error(word.span, f"{function} is not executable yet", hint)
    if "distinct" in node.meta:
        raise scope.text.error(node.meta["distinct"], f"{function}(DISTINCT ...) is not executable yet")
    return function


def _argument(function: str, node: exp.Expr, scope: Scope, resolve: Resolve) -> Expression:
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        raise scope.text.error(span_of(node), f"'*' can only stand in count(*), not in {function}")
    value = resolve(node, scope)
    if isinstance(value, Prefix):
        # A prefix is NULL where its address is.
        if function == "count":
            return value.column
        raise not_yet(scope.text, node, f"{function} of a prefix", f"use {function} of the address")
    if is_null(value) and function != "count":
        raise scope.text.error(span_of(node), f"{function} of a bare NULL has no type")
    return value


def _counts_rows(node: exp.Expr, scope: Scope) -> bool:
    """count(*), count(P.*) and count(1) count tuples."""
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        scope.name(node)  # checks the qualifier
        return True
    return isinstance(node, exp.Star | exp.Literal)


def _when(test: Expression, value: Expression) -> Column | Computed:
    """FILTER (WHERE test): other tuples have NULL, which no aggregate counts."""
    return _attribute(Case(((test, value),), None, value.type))


def _attribute(value: Expression) -> Column | Computed:
    attribute = attribute_of(value)
    assert not isinstance(attribute, Prefix)  # refused before
    return attribute
