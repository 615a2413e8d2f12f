"""The select list: `*` spelled out, expressions resolved, and the names of the result's columns."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.aggregates.registry import function_of
from penstock.lang.ast import Item, Select, span_of
from penstock.logical.expressions import (
    COUNT,
    ITEM,
    UNDERCOUNT,
    Aggregate,
    Bucket,
    Column,
    Computed,
    Expression,
    Listed,
    Prefix,
    WindowEnd,
)
from penstock.logical.expressions import columns as columns_of
from penstock.logical.query import Attribute, OutputColumn
from penstock.logical.render import render
from penstock.logical.resolve.grouping import Grouping, check_key, group_scope
from penstock.logical.resolve.scopes import StreamColumns, TupleScope, unwrap
from penstock.logical.types import BIGINT
from penstock.logical.values.attributes import attribute_name, attribute_of
from penstock.logical.values.scalars import resolve_scalar
from penstock.logical.values.type_rules import is_null

WINDOW_COLUMNS = ("window_start", "window_end")  # that results have besides their select list


def spell_out(select: Select, columns: StreamColumns) -> Select:
    """The select with the stream's columns in the place of `*` and `P.*`."""
    items: list[Item] = []
    for item in select.items:
        node = item.expression
        qualified = isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
        items.extend(columns.starred(node) if qualified or isinstance(node, exp.Star) else [item])
    return replace(select, items=tuple(items))


def grouped_outputs(
    select: Select, grouping: Grouping, columns: StreamColumns, added: tuple[str, ...]
) -> tuple[OutputColumn, ...]:
    """Outputs made of keys and aggregates; `added` are names that the result has besides."""
    scope = group_scope(grouping, columns)
    found = [(item, resolve_scalar(item.expression, scope)) for item in select.items]
    return _named(found, grouping, columns, added)


def tuple_outputs(
    select: Select, grouping: Grouping, columns: StreamColumns, added: tuple[str, ...]
) -> tuple[OutputColumn, ...]:
    """Outputs made of each record alone; all but constants become keys."""
    scope = TupleScope(columns, clause="a query without GROUP BY")
    found: list[tuple[Item, Expression]] = []
    for item in select.items:
        expression = resolve_scalar(item.expression, scope)
        if columns_of(expression):
            expression = attribute_of(expression)
            check_key(expression, item.expression, columns.text)
            grouping.add(expression)
        found.append((item, expression))
    return _named(found, grouping, columns, added)


def _named(
    found: list[tuple[Item, Expression]], grouping: Grouping, columns: StreamColumns, added: tuple[str, ...]
) -> tuple[OutputColumn, ...]:
    text = columns.text
    outputs: list[OutputColumn] = []
    taken: set[str] = set()
    for item, expression in found:
        span = item.alias.span if item.alias else item.span
        if is_null(expression):
            hint = "cast it, like CAST(NULL AS BIGINT)"
            raise text.error(item.span, "a bare NULL in the select list has no type", hint)
        for name, shown in _columns(item, expression, grouping, columns):
            if name.casefold() in added:
                raise text.error(span, f"'{name}' is a column that every result has", "choose another name with AS")
            if name.casefold() in taken:
                raise text.error(span, f"two columns are called '{name}'", "choose another name with AS")
            taken.add(name.casefold())
            outputs.append(OutputColumn(name, shown))
    return tuple(outputs)


def _columns(
    item: Item, expression: Expression, grouping: Grouping, columns: StreamColumns
) -> list[tuple[str, Expression]]:
    """An item is a column; one that gives rows is three."""
    if not isinstance(expression, Aggregate) or not function_of(expression).lists:
        return [(_output_name(item, expression, grouping, columns), expression)]
    text = columns.text
    if item.alias is None:
        hint = f"write {text.at(item.span)} AS f: there will be the columns f, count_f and undercount_f"
        raise text.error(item.span, f"{expression.function} needs a name", hint)
    name = item.alias.text
    return [
        (name, Listed(expression, ITEM, expression.type)),
        (f"count_{name}", Listed(expression, COUNT, BIGINT)),
        (f"undercount_{name}", Listed(expression, UNDERCOUNT, BIGINT)),
    ]


def _output_name(item: Item, expression: Expression, grouping: Grouping, columns: StreamColumns) -> str:
    if item.alias:
        if not item.alias.text.strip():
            raise columns.text.error(item.alias.span, "an empty name")
        return item.alias.text
    node = unwrap(item.expression)
    if isinstance(expression, Bucket):
        return grouping.bucket_name or columns.text.at(span_of(node))
    if isinstance(expression, WindowEnd):
        return node.name
    if isinstance(expression, Column | Prefix | Computed):
        called = isinstance(node, exp.Column) and node.name.casefold() in grouping.named
        if called and expression in grouping.names:
            return grouping.names[expression]
        return attribute_name(attribute_of(columns.shown(expression)))
    return render(columns.shown(expression))


def key_name(attribute: Attribute, grouping: Grouping, by_alias: bool) -> str:
    if by_alias and attribute in grouping.names:
        return grouping.names[attribute]
    return attribute_name(attribute)
