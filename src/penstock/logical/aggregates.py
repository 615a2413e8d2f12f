"""Aggregate functions: which there are, what they take and give.

To add one: an entry in `_EXECUTABLE` with its rule, its state in `kernels`, its final step in `runtime.finish`,
and an example in the tests of `resolve`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from sqlglot import exp

from penstock.lang.ast import Word, span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import Aggregate, Column
from penstock.logical.scalars import not_yet
from penstock.logical.types import BIGINT, DOUBLE, Kind, Type


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


_EXECUTABLE: dict[str, Callable[[Type], Type | None]] = {
    "count": _any,
    "sum": _sum,
    "avg": _average,
    "min": _extreme,
    "max": _extreme,
}
_LATER = frozenset(
    {
        "variance",
        "var_samp",
        "var_pop",
        "stddev",
        "stddev_samp",
        "stddev_pop",
        "approx_count_distinct",
        "approx_percentile",
        "approx_frequent",
    }
)


def is_aggregate(name: str) -> bool:
    return name.lower() in _EXECUTABLE or name.lower() in _LATER


def check_call(node: exp.Anonymous, text: AppText) -> str:
    """The function's canonical name, or an error for one that is unknown or comes later."""
    word: Word = node.meta["name"]
    function = word.text.lower()
    if function in _LATER:
        raise text.error(word.span, f"{function} is not executable yet", f"there are {', '.join(_EXECUTABLE)}")
    if function not in _EXECUTABLE:
        near = get_close_matches(function, [*_EXECUTABLE, *sorted(_LATER)], n=1, cutoff=0.7)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(_EXECUTABLE)}"
        raise text.error(word.span, f"unknown function '{word.text}'", hint)
    if "distinct" in node.meta:
        raise text.error(node.meta["distinct"], f"{function}(DISTINCT ...) is not executable yet")
    return function


def resolve_aggregate(node: exp.Anonymous, text: AppText, column: Callable[[exp.Column], Column]) -> Aggregate:
    """`column` resolves the argument among the stream's columns."""
    function = check_call(node, text)
    if len(node.expressions) != 1:
        raise text.error(span_of(node), f"{function} takes one argument, not {len(node.expressions)}")
    argument = node.expressions[0]
    while isinstance(argument, exp.Paren):
        argument = argument.this
    if function == "count" and _counts_rows(argument, column):
        return Aggregate("count", None, BIGINT)
    if not isinstance(argument, exp.Column) or isinstance(argument.this, exp.Star):
        raise _bad_argument(function, argument, text)
    found = column(argument)
    result = _EXECUTABLE[function](found.type)
    if result is None:
        raise text.error(span_of(argument), f"{function} needs numbers, but '{found.name}' is {found.type}")
    if function in ("min", "max") and found.type.kind in (Kind.INET, Kind.PREFIX):
        raise not_yet(text, node, f"{function} of {found.type}")
    return Aggregate(function, found, result)


def _counts_rows(argument: exp.Expr, column: Callable[[exp.Column], Column]) -> bool:
    """count(*), count(P.*) and count(1) count tuples."""
    if isinstance(argument, exp.Column) and isinstance(argument.this, exp.Star):
        column(argument)  # checks the qualifier
        return True
    return isinstance(argument, exp.Star | exp.Literal)


def _bad_argument(function: str, argument: exp.Expr, text: AppText) -> Exception:
    if isinstance(argument, exp.Star) or isinstance(argument.this, exp.Star):
        return text.error(span_of(argument), f"'*' can only stand in count(*), not in {function}")
    for inner in argument.find_all(exp.Anonymous):
        if is_aggregate(inner.name):
            return text.error(span_of(inner), "an aggregate inside an aggregate")
    return not_yet(text, argument, f"{function} of an expression", f"use {function} of a column")
