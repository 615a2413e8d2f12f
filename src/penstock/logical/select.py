"""One SELECT to a `Query`: the order of questions is the order in which its clauses depend on each other.

sources ─► stream ─► WHERE ─► GROUP BY ─► window ─► select list ─► HAVING
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from penstock.lang.ast import Derived, Item, Relation, Select, SelectQuery, SetOperation, Word, span_of
from penstock.lang.text import AppText, Span
from penstock.logical.expressions import Aggregate, Bucket, Column, Expression, Prefix, walk
from penstock.logical.grouping import Grouping, group_scope, resolve_grouping
from penstock.logical.query import Key, Output, Query, Stream
from penstock.logical.render import render
from penstock.logical.scalars import resolve_condition, resolve_scalar
from penstock.logical.scopes import StreamColumns, TupleScope, unwrap
from penstock.logical.type_rules import is_null
from penstock.logical.windows import resolve_window

_ADDED = ("window_start", "window_end")  # columns that every result has besides its select list


class Catalog(Protocol):
    """Where the streams of an app, or of a Python `App`, are found by name."""

    def stream(self, name: Word, text: AppText) -> Stream: ...


def resolve_select(name: str, query: SelectQuery, text: AppText, catalog: Catalog, sink: str | None) -> Query:
    select, relation = _supported(query, text)
    stream = catalog.stream(relation.name, text)
    qualifiers = (relation.name, *((relation.alias,) if relation.alias else ()))
    columns = StreamColumns(text, stream, qualifiers)
    where = _where(select, columns)
    grouping = resolve_grouping(select, columns)
    window = resolve_window(text, select, relation.window, grouping.bucket, relation.name.span)
    outputs = _outputs(select, grouping, columns)
    having = _having(select, grouping, columns, outputs)
    _refuse_after(select, text)
    return Query(
        name=name,
        stream=stream.name,
        window=window,
        where=where,
        keys=_keys(select, grouping, outputs, text),
        select=outputs,
        having=having,
        aggregates=_aggregates(outputs, having),
        sink=sink,
    )


# -- what runs and what does not yet


def _supported(query: SelectQuery, text: AppText) -> tuple[Select, Relation]:
    """The plain select over one stream that runs now; everything else is refused where it stands."""
    if isinstance(query, SetOperation):
        raise _later(text, query.span, query.operator)
    if query.with_span:
        raise _later(text, query.with_span, "WITH")
    if query.distinct:
        raise _later(text, query.distinct, "SELECT DISTINCT")
    for item in query.items:
        if isinstance(item.expression, exp.Star):
            raise text.error(item.span, "SELECT * is not executable yet", "name the columns")
    if len(query.sources) > 1:
        raise _later(text, query.sources[1].joined or query.span, "a join")
    source = query.sources[0]
    if isinstance(source, Derived):
        raise _later(text, source.span, "a subquery in FROM")
    return query, source


def _later(text: AppText, span: Span, feature: str) -> Exception:
    return text.error(span, f"{feature} is not executable yet")


def _refuse_after(select: Select, text: AppText) -> None:
    """Clauses that act on the results; they come last, so that mistakes before them are told first."""
    if select.ordered:
        raise _later(text, select.ordered, "ORDER BY")
    if select.limit:
        raise _later(text, select.limit.span, "LIMIT")
    if select.delay:
        raise _later(text, select.delay.span, "LIMIT DELAY TO")


# -- clauses


def _where(select: Select, columns: StreamColumns) -> Expression | None:
    if select.where is None:
        return None
    aliases = frozenset(item.alias.text.casefold() for item in (*select.items, *select.group) if item.alias)
    return resolve_condition(select.where, TupleScope(columns, aliases), "WHERE")


def _outputs(select: Select, grouping: Grouping, columns: StreamColumns) -> tuple[Output, ...]:
    scope = group_scope(grouping, columns)
    outputs: list[Output] = []
    taken: set[str] = set()
    for item in select.items:
        expression = resolve_scalar(item.expression, scope)
        span = item.alias.span if item.alias else item.span
        if is_null(expression):
            raise columns.text.error(item.span, "a bare NULL in the select list has no type")
        name = _output_name(item, expression, grouping, columns.text)
        if name.casefold() in _ADDED:
            fact = f"'{name}' is a column that every result has"
            raise columns.text.error(span, fact, "choose another name with AS")
        if name.casefold() in taken:
            raise columns.text.error(span, f"two columns are called '{name}'", "choose another name with AS")
        taken.add(name.casefold())
        outputs.append(Output(name, expression))
    if not (grouping.attributes or grouping.bucket or _aggregates(tuple(outputs), None)):
        hint = "select an aggregate like count(*), or add GROUP BY"
        raise columns.text.error(select.span, "a query without aggregates is not executable yet", hint)
    return tuple(outputs)


def _output_name(item: Item, expression: Expression, grouping: Grouping, text: AppText) -> str:
    if item.alias:
        if not item.alias.text.strip():
            raise text.error(item.alias.span, "an empty name")
        return item.alias.text
    node = unwrap(item.expression)
    if isinstance(expression, Bucket):
        return grouping.bucket_name or text.at(span_of(node))
    if isinstance(expression, Column | Prefix):
        called = isinstance(node, exp.Column) and node.name.casefold() in grouping.named
        return _key_name(expression, grouping, by_alias=called)
    return render(expression)


def _key_name(attribute: Column | Prefix, grouping: Grouping, by_alias: bool) -> str:
    if by_alias and attribute in grouping.names:
        return grouping.names[attribute]
    return attribute.name if isinstance(attribute, Column) else f"{attribute.column.name}/{attribute.length}"


def _having(
    select: Select, grouping: Grouping, columns: StreamColumns, outputs: tuple[Output, ...]
) -> Expression | None:
    if select.having is None:
        return None
    aliases = {output.name.casefold(): output.expression for output in outputs}
    scope = replace(group_scope(grouping, columns), aliases=aliases)
    return resolve_condition(select.having, scope, "HAVING")


def _keys(select: Select, grouping: Grouping, outputs: tuple[Output, ...], text: AppText) -> tuple[Key, ...]:
    keys: list[Key] = []
    for attribute in grouping.attributes:
        selected = [output.name for output in outputs if output.expression == attribute]
        name = selected[0] if selected else _key_name(attribute, grouping, by_alias=True)
        if any(name.casefold() == key.name.casefold() for key in keys):
            raise text.error(select.group[0].span, f"two group keys are called '{name}'", "name one of them with AS")
        keys.append(Key(name, attribute))
    return tuple(keys)


def _aggregates(outputs: tuple[Output, ...], having: Expression | None) -> tuple[Aggregate, ...]:
    expressions = [output.expression for output in outputs] + ([having] if having is not None else [])
    found = (part for expression in expressions for part in walk(expression) if isinstance(part, Aggregate))
    return tuple(dict.fromkeys(found))
