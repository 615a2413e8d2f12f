"""A SELECT over several inputs to a `Query`.

    inputs ──► columns ──► WHERE and ON split ──► tables ──► keys ──► sides
                   └─────► all other clauses (`resolve.select`) ──┘

Where only one stream is left, as tables were put into its records, the query is one on that stream like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.errors import QueryError
from penstock.lang.ast import Select
from penstock.lang.text import AppText
from penstock.logical.expressions import Aggregate, Column, Expression, Prefix
from penstock.logical.query import Join, Key, Order, OutputColumn, Query, Side
from penstock.logical.render import render
from penstock.logical.resolve.joins.columns import JoinedColumns, JoinInput
from penstock.logical.resolve.joins.conditions import JoinKeys, conjunction, conjuncts, inputs_of, join_keys
from penstock.logical.resolve.joins.tables import TableJoins, Tables
from penstock.logical.resolve.joins.windows import joined_window, side_windows
from penstock.logical.resolve.select import Named, resolve_clauses, resolve_where
from penstock.logical.rewrite import Change, computed, own, rewritten
from penstock.logical.window import Window

_MOST_STREAMS = 4
_NO_EQUALITY = "join them by an equality: WHERE A.key = B.key"


def resolve_join(named: Named, select: Select, text: AppText, inputs: tuple[JoinInput, ...], tables: Tables) -> Query:
    """The query of a SELECT with several inputs, at least one of them a stream."""
    streams = tuple(one for one in inputs if not one.table)
    _check_inputs(text, inputs, streams)
    columns = JoinedColumns.of(text, inputs)
    windows: list[tuple[Window, ...]] = []

    def window_of(bucket: object) -> Window:
        windows.append(side_windows(text, select, streams, bucket))  # type: ignore[arg-type]
        return joined_window(windows[0])

    query = resolve_clauses(named, select, columns, window_of)
    _check_prefixes(query, text, inputs)
    where, on = _conditions(select, columns, inputs)
    aliases = tuple(one.alias for one in streams)
    of_streams = [(next(iter(of)), part) for part in where if len(of := inputs_of(part)) == 1 and of <= set(aliases)]
    rest = [part for part in where if (next(iter(inputs_of(part)), ""), part) not in of_streams]
    joins = TableJoins(tables, aliases, rest, [], [], {})
    joins.resolve([one for one in inputs if one.table], on, _wrong(text))
    found = join_keys(aliases, joins.conditions)
    _check_keys(text, streams, found)
    filters = [*of_streams, *joins.filters, *found.filters]
    # Also what is of one stream now, as its records know their rows: a record that has a row counts, whatever is asked.
    pairs = [part for part in joins.conditions if part not in found.said]
    query = _rewritten(query, joins.change)
    if len(streams) == 1 and not joins.sides and not pairs:
        return _of_one_stream(query, streams[0], windows[0][0], [part for _, part in filters])
    sides = tuple(
        Side(
            one.alias,
            one.input.stream.name,
            window,
            _own_condition([part for alias, part in filters if alias == one.alias], one.alias),
            tuple(computed(own(part, one.alias)) for part in key),
            one.input.stream.time,
        )
        for one, window, key in zip(streams, windows[0], found.keys, strict=True)
    )
    return replace(query, join=Join(sides, tuple(joins.sides), conjunction(pairs)))


# -- what cannot be


def _check_inputs(text: AppText, inputs: Sequence[JoinInput], streams: Sequence[JoinInput]) -> None:
    if not streams:
        hint = "give FROM a stream besides: FROM packets [RANGE '1 minute'] P, owners O"
        raise text.error(inputs[0].span, "a query needs a stream, and this one reads tables alone", hint)
    if len(streams) > _MOST_STREAMS:
        hint = "join some of them in a query of their own, and read its results here"
        raise text.error(streams[_MOST_STREAMS].span, f"a join of more than {_MOST_STREAMS} streams", hint)
    seen: dict[str, JoinInput] = {}
    for one in inputs:
        if "." in one.alias or ":" in one.alias:
            raise text.error(one.span, f"'{one.alias}' cannot name an input of a join", "name it with AS")
        if one.alias.casefold() in seen:
            hint = f"tell them apart: {one.input.name} AS a, {one.input.name} AS b"
            raise text.error(one.span, f"two inputs of the join are called '{one.alias}'", hint)
        seen[one.alias.casefold()] = one
        if one.table and one.window is not None:
            raise text.error(one.window.span, f"the table '{one.input.name}' has no time, and no window")
        _check_outer(text, one)


def _check_outer(text: AppText, one: JoinInput) -> None:
    assert one.joined is not None or not one.outer
    if one.outer and one.joined is not None and (one.outer != "LEFT" or not one.table):
        what = f"{one.outer} JOIN" if one.table else f"{one.outer} JOIN of a stream"
        hint = "LEFT JOIN is for tables, with the stream before it" if one.table else "streams have inner joins alone"
        raise text.error(one.joined, f"{what} is not executable", hint)
    if one.outer and one.on is None and one.joined is not None:
        raise text.error(one.joined, "LEFT JOIN needs ON", "write LEFT JOIN owners O ON P.src = O.addr")


def _check_keys(text: AppText, streams: Sequence[JoinInput], found: JoinKeys) -> None:
    if len(streams) == 1 or any(found.keys):
        return
    last = streams[-1]
    place = last.joined or last.span
    if not found.connected:
        raise text.error(place, f"no equality joins {last.input.what} with the others", _NO_EQUALITY)
    fact = "a join of streams by different keys is not executable yet: all must have one in common"
    raise text.error(place, fact, "join some of them in a query of their own, and read its results here")


def _check_prefixes(query: Query, text: AppText, inputs: Sequence[JoinInput]) -> None:
    """Prefixes are cut out of addresses of records; those of tables are found, not read."""
    tables = {one.alias: one for one in inputs if one.table}
    for key in query.keys:
        attribute = key.attribute
        if isinstance(attribute, Prefix) and (alias := attribute.column.name.partition(".")[0]) in tables:
            raise text.error(
                tables[alias].span, f"prefixes of a table's column ({render(attribute)}) are not executable"
            )


def _wrong(text: AppText) -> Callable[[JoinInput, Expression | str], QueryError]:
    def wrong(one: JoinInput, what: Expression | str) -> QueryError:
        if isinstance(what, str):
            return text.error(one.span, f"table '{one.input.name}': {what}", "mend the table, and run again")
        fact = f"ON of a LEFT JOIN cannot say {render(what)}"
        return text.error(one.span, fact, "compare the table with one stream there, and say the rest in WHERE")

    return wrong


# -- conditions


def _conditions(
    select: Select, columns: JoinedColumns, inputs: Sequence[JoinInput]
) -> tuple[list[Expression], dict[str, tuple[Expression, ...]]]:
    """Conditions of WHERE and of ON, and apart from them those of LEFT JOINs, by table."""
    where: list[Expression] = []
    on: dict[str, tuple[Expression, ...]] = {}
    for one in inputs:
        if one.on is not None:
            parts = conjuncts(resolve_where(one.on, select, columns, "ON"))
            if one.outer:
                on[one.alias] = parts
            else:
                where += parts
    if select.where is not None:
        where += conjuncts(resolve_where(select.where, select, columns))
    return where, on


def _own_condition(parts: Sequence[Expression], alias: str) -> Expression | None:
    return conjunction(own(part, alias) for part in parts)


# -- the query


def _rewritten(query: Query, change: Change) -> Query:
    """The same with other expressions in the place of columns."""

    def aggregate(one: Aggregate) -> Aggregate:
        made = rewritten(one, change)
        assert isinstance(made, Aggregate)
        return made

    return replace(
        query,
        keys=tuple(Key(key.name, computed(rewritten(key.attribute, change))) for key in query.keys),
        select=tuple(OutputColumn(one.name, rewritten(one.expression, change)) for one in query.select),
        having=None if query.having is None else rewritten(query.having, change),
        aggregates=tuple(dict.fromkeys(aggregate(one) for one in query.aggregates)),
        order=tuple(Order(rewritten(one.expression, change), one.descending) for one in query.order),
    )


def _of_one_stream(query: Query, stream: JoinInput, window: Window, where: Sequence[Expression]) -> Query:
    """A query on one stream, whose records have found their rows in all tables."""

    def bare(part: Expression) -> Expression | None:
        return own(part, stream.alias) if isinstance(part, Column) and part.name != "*" else None

    made = _rewritten(query, bare)
    return replace(made, stream=stream.input.stream.name, window=window, where=_own_condition(where, stream.alias))
