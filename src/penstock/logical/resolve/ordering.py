"""ORDER BY and LIMIT, which act on the results of each window."""

from __future__ import annotations

from sqlglot import exp

from penstock.lang import ast
from penstock.lang.ast import Select, span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import Expression, IsNull, Literal
from penstock.logical.expressions import columns as columns_of
from penstock.logical.query import Order, OutputColumn
from penstock.logical.resolve.grouping import Grouping, check_key, group_scope
from penstock.logical.resolve.scopes import StreamColumns, TupleScope, unwrap, word_of
from penstock.logical.values import constants
from penstock.logical.values.attributes import attribute_of
from penstock.logical.values.scalars import resolve_constant, resolve_scalar


def resolve_order(
    select: Select,
    listed: tuple[OutputColumn, ...],
    outputs: tuple[OutputColumn, ...],
    grouping: Grouping,
    columns: StreamColumns,
    per_tuple: bool,
) -> tuple[Order, ...]:
    """Entries are columns of the select list by number or outputs by name, or expressions of what groups have (of
    records, if nothing is grouped)."""
    found: list[Order] = []
    for entry in select.order:
        expression = _named(entry, listed, outputs, columns.text)
        if expression is None and per_tuple:
            expression = _of_tuples(entry, grouping, columns)
        elif expression is None:
            expression = _of_groups(entry, outputs, grouping, columns)
        if isinstance(expression, Literal):
            raise columns.text.error(span_of(entry.expression), "ORDER BY a constant orders nothing", "leave it out")
        found.extend(_entries(entry, expression))
    return tuple(dict.fromkeys(found))


def _entries(entry: ast.OrderTerm, expression: Expression) -> list[Order]:
    """NULL is below every value; where it is wanted elsewhere, that is ordered by first."""
    usual = "LAST" if entry.descending else "FIRST"
    own = Order(expression, entry.descending)
    return [own] if entry.nulls in ("", usual) else [Order(IsNull(expression), entry.nulls == "FIRST"), own]


def _named(
    entry: ast.OrderTerm, listed: tuple[OutputColumn, ...], outputs: tuple[OutputColumn, ...], text: AppText
) -> Expression | None:
    node = unwrap(entry.expression)
    if isinstance(node, exp.Literal) and not node.is_string:
        position = constants.whole(node.name) or 0
        if not 1 <= position <= len(listed):
            fact = f"ORDER BY {node.name} names no column of the select list"
            raise text.error(span_of(node), fact, f"the select list has {len(listed)} of them")
        return listed[position - 1].expression
    if isinstance(node, exp.Column) and node.args.get("table") is None and not isinstance(node.this, exp.Star):
        word = word_of(node)
        return next((output.expression for output in outputs if word.same(output.name)), None)
    return None


def _of_groups(
    entry: ast.OrderTerm, outputs: tuple[OutputColumn, ...], grouping: Grouping, columns: StreamColumns
) -> Expression:
    aliases = {output.name.casefold(): output.expression for output in outputs}
    return resolve_scalar(entry.expression, group_scope(grouping, columns).with_aliases(aliases))


def _of_tuples(entry: ast.OrderTerm, grouping: Grouping, columns: StreamColumns) -> Expression:
    """What is ordered by becomes a key too: the rows stay the same, and the order can be told from them."""
    expression = resolve_scalar(entry.expression, TupleScope(columns, clause="ORDER BY"))
    if not columns_of(expression):
        return expression
    attribute = attribute_of(expression)
    check_key(attribute, entry.expression, columns.text)
    grouping.add(attribute)
    return attribute


def resolve_limit(select: Select, text: AppText) -> int | None:
    if select.limit is None:
        return None
    node = unwrap(select.limit.expression)
    literal = resolve_constant(node, text)
    if literal is None or not isinstance(literal.value, int | float) or isinstance(literal.value, bool):
        raise text.error(span_of(node), "LIMIT needs a number", "write it like LIMIT 10")
    if not isinstance(literal.value, int):
        raise text.error(span_of(node), "LIMIT needs a whole number", "write it like LIMIT 10")
    if literal.value < 0:
        raise text.error(span_of(node), "LIMIT cannot be negative", "write it like LIMIT 10")
    return literal.value
