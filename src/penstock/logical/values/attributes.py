"""Expressions of a record as attributes: columns, prefixes and computed columns, which can be grouped by and
aggregated."""

from __future__ import annotations

from penstock.logical.expressions import Column, Expression, Prefix
from penstock.logical.query import Attribute
from penstock.logical.render import render
from penstock.logical.rewrite import computed


def attribute_of(expression: Expression) -> Attribute:
    """Columns and prefixes are attributes themselves, everything else is a column that the query makes.

    >>> from penstock.logical.expressions import Arithmetic
    >>> from penstock.logical.types import BIGINT
    >>> attribute_of(Arithmetic("+", Column("a", BIGINT), Column("b", BIGINT), BIGINT)).name
    '=a + b'
    """
    return computed(expression)


def attribute_name(attribute: Attribute) -> str:
    """How results call it unless they are told otherwise."""
    if isinstance(attribute, Column):
        return attribute.name
    if isinstance(attribute, Prefix):
        return f"{attribute.column.name}/{attribute.length}"
    return render(attribute.expression)
