"""Expressions with other parts: how a join's columns become those of its sides, and columns of tables what a record
finds there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from penstock.logical.expressions import Column, Computed, Expression, Lookup, Match, Prefix, columns
from penstock.logical.query import Attribute, side_column
from penstock.logical.render import render

Change = Callable[[Expression], Expression | None]
E = TypeVar("E", bound=Expression)


def rewritten(expression: Expression, change: Change) -> Expression:
    """The expression with what `change` gives in the place of its parts; None: that part stays, and its own parts are
    looked at. A computed column is called by its new text."""
    other = change(expression)
    if other is not None:
        return other
    if isinstance(expression, Computed):
        inner = rewritten(expression.expression, change)
        return computed(inner)
    if isinstance(expression, Lookup):
        return replace(expression, match=rewritten_match(expression.match, change))
    parts = {field.name: getattr(expression, field.name) for field in fields(expression)}
    return replace(expression, **{name: _part(value, change) for name, value in parts.items()})


def computed(expression: Expression) -> Attribute:
    """A column, made or read, of an expression."""
    if isinstance(expression, Column | Prefix | Computed):
        return expression
    return Computed("=" + render(expression), expression, expression.type)


def rewritten_match(match: Match, change: Change) -> Match:
    """The record's part of a match; that of the table stays."""
    return replace(
        match,
        equals=tuple((rewritten(of, change), column) for of, column in match.equals),
        value=None if match.value is None else rewritten(match.value, change),
    )


def _part(value: Any, change: Change) -> Any:
    if isinstance(value, tuple):
        return tuple(_part(one, change) for one in value)
    return rewritten(value, change) if isinstance(value, Expression) else value


def inputs_read(expression: Expression) -> frozenset[str]:
    """The inputs of a join whose columns an expression reads."""
    return frozenset(name.partition(".")[0] for name in columns(expression))


def own(expression: E, alias: str) -> E:
    """An expression of a join in the stream's own columns, where all of it is of this side."""
    before = side_column(alias, "")

    def bare(part: Expression) -> Expression | None:
        if isinstance(part, Column):
            assert part.name.startswith(before), part.name
            return replace(part, name=part.name.removeprefix(before))
        return None

    return cast(E, rewritten(expression, bare))


def unqualified(expression: Expression) -> Expression:
    """The same without the names of sides, for people."""

    def bare(part: Expression) -> Expression | None:
        return replace(part, name=part.name.partition(".")[2] or part.name) if isinstance(part, Column) else None

    return rewritten(expression, bare)
