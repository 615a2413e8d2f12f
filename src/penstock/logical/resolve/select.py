"""One SELECT to a `Query`; its clauses are resolved in the order in which they need each other.

WHERE ─► GROUP BY ─► window ─► select list ─► HAVING ─► ORDER BY, LIMIT

`nesting` finds the input, and resolves the selects that stand inside before this one. Several inputs are a join
(`resolve.joins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.lang.ast import Duration, Item, Select, WindowClause, Word, span_of
from penstock.lang.text import AppText, Span
from penstock.logical.expressions import Aggregate, Expression, walk
from penstock.logical.query import Key, OutputColumn, Query
from penstock.logical.resolve.grouping import Grouping, group_scope, resolve_grouping
from penstock.logical.resolve.listing import check_listed
from penstock.logical.resolve.ordering import resolve_limit, resolve_order
from penstock.logical.resolve.outputs import WINDOW_COLUMNS, grouped_outputs, key_name, spell_out, tuple_outputs
from penstock.logical.resolve.promises.columns import check_estimable, promised_outputs
from penstock.logical.resolve.scopes import Input, StreamColumns, TupleScope
from penstock.logical.resolve.windows import resolve_window
from penstock.logical.values.aggregates import uses_aggregates
from penstock.logical.values.scalars import resolve_condition
from penstock.logical.window import Window


@dataclass(frozen=True)
class FromItem:
    """What FROM names: the input, the names its columns may be qualified with, its window, and where it stands."""

    input: Input
    qualifiers: tuple[Word, ...]
    window: WindowClause | None
    span: Span


@dataclass(frozen=True)
class Named:
    """What a SELECT is called, and where its results go."""

    name: str
    sink: str | None = None
    hidden: bool = False


WindowOf = Callable[[Duration | None], Window]  # given the time bucket of GROUP BY


def resolve_select(named: Named, select: Select, text: AppText, source: FromItem) -> Query:
    columns = StreamColumns(text, source.input, source.qualifiers)

    def window(bucket: Duration | None) -> Window:
        return resolve_window(text, select, source.window, bucket, source.span, source.input)

    where = None if select.where is None else resolve_where(select.where, select, columns)
    query = resolve_clauses(named, select, columns, window)
    return replace(query, stream=source.input.stream.name, where=where)


def resolve_clauses(named: Named, select: Select, columns: StreamColumns, window_of: WindowOf) -> Query:
    """All but FROM and WHERE, which differ where a query reads several streams."""
    text, select = columns.text, spell_out(select, columns)
    per_tuple = _per_tuple(select, text)
    grouping = resolve_grouping(_distinct_grouped(select), columns)
    window = window_of(grouping.bucket)
    added = () if window.whole else WINDOW_COLUMNS
    outputs = (tuple_outputs if per_tuple else grouped_outputs)(select, grouping, columns, added)
    _check_distinct(select, grouping, outputs, text)
    check_estimable(select, window, text)
    shown = promised_outputs(select, outputs, grouping, columns, per_tuple)
    having = _having(select, grouping, columns, shown)
    order = resolve_order(select, outputs, shown, grouping, columns, per_tuple)
    limit = resolve_limit(select, text)
    check_listed(select, outputs, having, order, grouping, text)
    computed = [*(output.expression for output in shown), having, *(entry.expression for entry in order)]
    return Query(
        name=named.name,
        stream="",
        window=window,
        where=None,
        keys=_keys(select, grouping, shown, text),
        select=shown,
        having=having,
        aggregates=_aggregates(expression for expression in computed if expression is not None),
        sink=named.sink,
        order=order,
        limit=limit,
        per_tuple=per_tuple,
        hidden=named.hidden,
        promise=select.delay.microseconds if select.delay else None,
    )


def resolve_where(condition: exp.Expr, select: Select, columns: StreamColumns, clause: str = "WHERE") -> Expression:
    """A condition on records: WHERE, or ON of a join."""
    aliases = frozenset(item.alias.text.casefold() for item in (*select.items, *select.group) if item.alias)
    return resolve_condition(condition, TupleScope(columns, aliases, clause), clause)


def _per_tuple(select: Select, text: AppText) -> bool:
    """Whether the query only looks at records, one by one."""
    ordered = [entry.expression for entry in select.order]
    asked = [*(item.expression for item in select.items), *([select.having] if select.having else []), *ordered]
    if select.group or select.distinct or uses_aggregates(asked):
        return False
    if select.having is not None:
        hint = "filter tuples with WHERE, or add GROUP BY"
        raise text.error(span_of(select.having), "HAVING in a query without GROUP BY and aggregates", hint)
    return True


# -- SELECT DISTINCT


def _distinct_grouped(select: Select) -> Select:
    """SELECT DISTINCT without GROUP BY and aggregates groups by its select list."""
    if not select.distinct or select.group or uses_aggregates([item.expression for item in select.items]):
        return select
    listed = tuple(Item(item.expression, None) for item in select.items if item.expression.find(exp.Column))
    return replace(select, group=listed)


def _check_distinct(select: Select, grouping: Grouping, outputs: tuple[OutputColumn, ...], text: AppText) -> None:
    """Groups differ in their keys: rows that show all of them are distinct already."""
    shown = {output.expression for output in outputs}
    if select.distinct and not shown.issuperset(grouping.attributes):
        hint = "select all keys of GROUP BY, or use a query on this query's results"
        raise text.error(select.distinct, "DISTINCT of groups without all their keys is not executable yet", hint)


# -- groups


def _having(
    select: Select, grouping: Grouping, columns: StreamColumns, outputs: tuple[OutputColumn, ...]
) -> Expression | None:
    if select.having is None:
        return None
    aliases = {output.name.casefold(): output.expression for output in outputs}
    return resolve_condition(select.having, group_scope(grouping, columns).with_aliases(aliases), "HAVING")


def _keys(select: Select, grouping: Grouping, outputs: tuple[OutputColumn, ...], text: AppText) -> tuple[Key, ...]:
    keys: dict[str, Key] = {}
    for attribute in grouping.attributes:
        selected = [output.name for output in outputs if output.expression == attribute]
        name = selected[0] if selected else key_name(attribute, grouping, by_alias=True)
        if name.casefold() in keys and select.group:
            raise text.error(select.group[0].span, f"two group keys are called '{name}'", "name one of them with AS")
        while name.casefold() in keys:  # only ordered by, and shown nowhere
            name += "'"
        keys[name.casefold()] = Key(name, attribute)
    return tuple(keys.values())


def _aggregates(expressions: Iterable[Expression]) -> tuple[Aggregate, ...]:
    found = (part for expression in expressions for part in walk(expression) if isinstance(part, Aggregate))
    return tuple(dict.fromkeys(found))
