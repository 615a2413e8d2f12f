"""Calls of aggregate functions: which function, and what its argument and FILTER become.

The functions themselves are in `aggregates.registry`.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.aggregates.base import AggregateFunction, BadParameter
from penstock.aggregates.details.function import DetailFunction
from penstock.aggregates.extremes import MAX, MIN
from penstock.aggregates.registry import AGGREGATES, DISTINCTS
from penstock.lang.ast import Word, span_of
from penstock.logical.expressions import Aggregate, Case, Column, Expression, Literal, Prefix
from penstock.logical.query import Attribute
from penstock.logical.render import render
from penstock.logical.types import BIGINT, INT, Kind
from penstock.logical.values.attributes import attribute_of
from penstock.logical.values.placed import NameScope, Resolve, condition, not_yet
from penstock.logical.values.type_rules import is_null


def is_aggregate(name: str) -> bool:
    return name.lower() in AGGREGATES


def uses_aggregates(nodes: list[exp.Expr]) -> bool:
    calls = (call for node in nodes for call in node.find_all(exp.Anonymous))
    return any(is_aggregate(call.name) and "extract" not in call.meta for call in calls)


def resolve_aggregate(node: exp.Anonymous, filtered: exp.Expr | None, scope: NameScope, resolve: Resolve) -> Aggregate:
    """`scope` is that of the records, for the argument and the condition of FILTER."""
    name = _name(node)
    function, distinct = _function(node, name, scope)
    first = _first_argument(node, function, scope)
    test = None if filtered is None else condition(filtered, scope, "FILTER", resolve)
    if function.counts and not distinct and _counts_rows(first, scope):
        return Aggregate(function.name, None if test is None else _when(test, Literal(1, INT)), BIGINT)
    detailed = isinstance(function, DetailFunction)
    value = _argument(name, first, scope, resolve, detailed)
    result = function.result(value.type)
    if result is None:
        what = f"{name} needs {function.wants}, but '{render(value)}' is {value.type}"
        raise scope.text.error(span_of(first), what)
    parameters = _parameters(node, function, scope, resolve)
    address = value.type.kind in (Kind.INET, Kind.PREFIX)
    if address and not isinstance(value, Column | Prefix):
        raise not_yet(scope.text, node, f"{name} of computed addresses", f"use {name} of a column")
    if address and test is not None and not detailed:
        raise not_yet(scope.text, node, f"{name} of addresses with FILTER", f"use {name} in a query with WHERE")
    if test is not None and not address:
        return Aggregate(function.name, _when(test, value), result, distinct, parameters)
    only = None if test is None else attribute_of(test)
    assert not isinstance(only, Prefix)
    return Aggregate(function.name, attribute_of(value), result, distinct, parameters, only)


def _name(node: exp.Anonymous) -> str:
    """The function's name as it stands there."""
    word: Word = node.meta["name"]
    return word.text.lower()


def _function(node: exp.Anonymous, name: str, scope: NameScope) -> tuple[AggregateFunction, bool]:
    """The function, and whether it is one of DISTINCT; the least of values is the least of distinct ones."""
    function, span = AGGREGATES[name], node.meta.get("distinct")
    if span is None or function in (MIN, MAX):
        return function, False
    if function.name not in DISTINCTS:
        raise scope.text.error(span, f"{name} takes no DISTINCT", f"write {usage(name, function)}")
    return DISTINCTS[function.name], True


def _first_argument(node: exp.Anonymous, function: AggregateFunction, scope: NameScope) -> exp.Expr:
    """The first argument without parentheses; the number of all is right."""
    given, most = len(node.expressions), 1 + len(function.parameters)
    least = 1 + sum(rule.default is None for rule in function.parameters)
    name = node.meta["name"].text.lower()
    if not least <= given <= most:
        several = f"{least} arguments" if least == most else f"{least} to {most} arguments"
        takes = "one argument" if most == 1 else several
        hint = f"write {usage(name, function)}" if most > 1 else ""
        raise scope.text.error(span_of(node), f"{name} takes {takes}, not {given}", hint)
    first: exp.Expr = node.expressions[0]
    while isinstance(first, exp.Paren):
        first = first.this
    return first


def usage(name: str, function: AggregateFunction) -> str:
    """How a call is written."""
    rest = "".join(f", {rule.name}" if rule.default is None else f" [, {rule.name}]" for rule in function.parameters)
    return f"{name}(x{rest})"


def _parameters(
    node: exp.Anonymous, function: AggregateFunction, scope: NameScope, resolve: Resolve
) -> tuple[Literal, ...]:
    """The constants of a call; those that were left away do."""
    given: list[Literal] = []
    for rule, at in zip(function.parameters, node.expressions[1:], strict=False):
        value = resolve(at, scope)
        if not isinstance(value, Literal):
            what = f"the {rule.name} of {function.name} must be a constant: {rule.wants}"
            raise scope.text.error(span_of(at), what, f"write {usage(function.name, function)}")
        given.append(value)
    try:
        function.completed([literal.value for literal in given])
    except BadParameter as problem:
        at = node.expressions[min(1 + problem.number, len(node.expressions) - 1)]
        hint = problem.hint or f"write {usage(function.name, function)}"
        raise scope.text.error(span_of(at), problem.what, hint) from None
    return tuple(given)


def _argument(function: str, node: exp.Expr, scope: NameScope, resolve: Resolve, detailed: bool) -> Expression:
    counts = AGGREGATES[function].counts and not detailed
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        hint = "name a column" if detailed else ""
        of = f"{function}(DISTINCT ...)" if detailed and function in DISTINCTS else function
        raise scope.text.error(span_of(node), f"'*' can only stand in count(*), not in {of}", hint)
    value = resolve(node, scope)
    if isinstance(value, Prefix) and not detailed:
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


def _when(test: Expression, value: Expression) -> Attribute:
    """FILTER (WHERE test): other records have NULL, which no aggregate counts."""
    return attribute_of(Case(((test, value),), None, value.type))
