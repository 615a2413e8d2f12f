"""Calls of aggregate functions: which function, and what its argument and FILTER become.

The functions themselves are in `aggregates.registry`.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.aggregates.registry import AGGREGATES
from penstock.lang.ast import Word, span_of
from penstock.logical.expressions import Aggregate, Case, Column, Computed, Expression, Literal, Prefix
from penstock.logical.render import render
from penstock.logical.types import BIGINT, INT, Kind
from penstock.logical.values.attributes import attribute_of
from penstock.logical.values.placed import NameScope, Resolve, condition, not_yet
from penstock.logical.values.type_rules import is_null

LATER = frozenset({"approx_count_distinct", "approx_percentile", "approx_frequent"})


def is_aggregate(name: str) -> bool:
    return name.lower() in AGGREGATES or name.lower() in LATER


def uses_aggregates(nodes: list[exp.Expr]) -> bool:
    calls = (call for node in nodes for call in node.find_all(exp.Anonymous))
    return any(is_aggregate(call.name) and "extract" not in call.meta for call in calls)


def resolve_aggregate(node: exp.Anonymous, filtered: exp.Expr | None, scope: NameScope, resolve: Resolve) -> Aggregate:
    """`scope` is that of the records, for the argument and the condition of FILTER."""
    name = _name(node, scope)
    function = AGGREGATES[name]
    if len(node.expressions) != 1:
        raise scope.text.error(span_of(node), f"{name} takes one argument, not {len(node.expressions)}")
    argument = node.expressions[0]
    while isinstance(argument, exp.Paren):
        argument = argument.this
    test = None if filtered is None else condition(filtered, scope, "FILTER", resolve)
    if function.counts and _counts_rows(argument, scope):
        return Aggregate(function.name, None if test is None else _when(test, Literal(1, INT)), BIGINT)
    value = _argument(name, argument, scope, resolve)
    result = function.result(value.type)
    if result is None:
        what = f"{name} needs {function.wants}, but '{render(value)}' is {value.type}"
        raise scope.text.error(span_of(argument), what)
    wanted = _when(test, value) if test is not None else _attribute(value)
    if isinstance(wanted, Computed) and wanted.type.kind in (Kind.INET, Kind.PREFIX):
        raise not_yet(scope.text, node, f"{name} of computed addresses", f"use {name} of a column")
    return Aggregate(function.name, wanted, result)


def _name(node: exp.Anonymous, scope: NameScope) -> str:
    """The function's name as it stands there, or an error for one that comes later."""
    word: Word = node.meta["name"]
    function = word.text.lower()
    if function in LATER:
        hint = f"there are {', '.join(AGGREGATES)}"
        raise scope.text.error(word.span, f"{function} is not executable yet", hint)
    if "distinct" in node.meta:
        hint = "group by it in one query, and use the aggregate in a second query on the results of the first"
        raise scope.text.error(node.meta["distinct"], f"{function}(DISTINCT ...) is not executable yet", hint)
    return function


def _argument(function: str, node: exp.Expr, scope: NameScope, resolve: Resolve) -> Expression:
    counts = AGGREGATES[function].counts
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        raise scope.text.error(span_of(node), f"'*' can only stand in count(*), not in {function}")
    value = resolve(node, scope)
    if isinstance(value, Prefix):
        # A prefix is NULL where its address is.
        if counts:
            return value.column
        raise not_yet(scope.text, node, f"{function} of a prefix", f"use {function} of the address")
    if is_null(value) and not counts:
        raise scope.text.error(span_of(node), f"{function} of a bare NULL has no type")
    return value


def _counts_rows(node: exp.Expr, scope: NameScope) -> bool:
    """count(*), count(P.*) and count(1) count records."""
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        scope.name(node)  # checks the qualifier
        return True
    return isinstance(node, exp.Star | exp.Literal)


def _when(test: Expression, value: Expression) -> Column | Computed:
    """FILTER (WHERE test): other records have NULL, which no aggregate counts."""
    return _attribute(Case(((test, value),), None, value.type))


def _attribute(value: Expression) -> Column | Computed:
    attribute = attribute_of(value)
    assert not isinstance(attribute, Prefix)  # refused before
    return attribute
