"""A SELECT over several inputs to a `Query`.

    inputs ──► columns ──► WHERE and ON split ──► tables ──► keys ──► sides
                   └─────► all other clauses (`resolve.select`) ──┘

Where only one stream is left, as tables were put into its records, the query is one on that stream like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import Duration, Select, span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import Aggregate, Column, Expression, Prefix
from penstock.logical.query import Attribute, Join, Key, Order, OutputColumn, Query, Side, side_column
from penstock.logical.render import render
from penstock.logical.resolve.joins.columns import JoinedColumns, JoinInput
from penstock.logical.resolve.joins.conditions import JoinKeys, conjunction, conjuncts, join_keys
from penstock.logical.resolve.joins.questions import Questions, inner_side, own_attributes, resolve_question
from penstock.logical.resolve.joins.subqueries import Inner
from penstock.logical.resolve.joins.tables import TableJoins, Tables
from penstock.logical.resolve.joins.windows import joined_window, needs_every, side_windows
from penstock.logical.resolve.select import Named, resolve_clauses, resolve_where
from penstock.logical.rewrite import Change, computed, inputs_read, own, rewritten
from penstock.logical.window import ROWS, Window

_MOST_STREAMS = 4
_IN_TWO = "join some of them in a query of their own, and read its results here"


def resolve_join(
    named: Named,
    select: Select,
    text: AppText,
    inputs: tuple[JoinInput, ...],
    tables: Tables,
    subqueries: tuple[Inner, ...] = (),
) -> Query:
    """The query of a SELECT with several inputs, at least one of them a stream; some may be asked by EXISTS alone, and
    WHERE says the rest."""
    streams = tuple(one for one in inputs if not one.table)
    inner = tuple(one.input for one in subqueries if not one.input.table)
    _check_inputs(text, inputs, streams, subqueries)
    columns = JoinedColumns.of(text, inputs)
    windows: list[tuple[Window, ...]] = []

    def window_of(bucket: Duration | None) -> Window:
        windows.append(side_windows(text, select, (*streams, *inner), bucket))
        return joined_window(windows[0][: len(streams)])

    query = resolve_clauses(named, select, columns, window_of)
    _check_prefixes(query, select, text, inputs)
    where, on = _conditions(select, columns, inputs)
    aliases = tuple(one.alias for one in streams)
    of_streams = [(next(iter(of)), part) for part in where if len(of := inputs_read(part)) == 1 and of <= set(aliases)]
    rest = [part for part in where if (next(iter(inputs_read(part)), ""), part) not in of_streams]
    joins = TableJoins(tables, aliases, rest, [], [], {})
    joins.resolve([one for one in inputs if one.table], on, _wrong(text))
    found = join_keys(aliases, joins.conditions)
    _check_keys(text, streams, found)
    questions = Questions(text, joins)
    for one in subqueries:
        questions.ask(resolve_question(one, text, columns))
    filters = [*of_streams, *joins.filters, *found.filters, *questions.filters]
    # Also what is of one stream now, as its records know their rows: a record that has a row counts, whatever is asked.
    pairs = [part for part in joins.conditions if part not in found.said]
    query = _rewritten(query, joins.change)
    window = windows[0][0]
    if len(streams) == 1 and not joins.sides and not pairs and not window.counted and not inner:
        made = _of_one_stream(query, streams[0], window, [part for _, part in filters])
        return replace(made, reads=_own_names(joins.reads, streams[0].alias))
    if window.axis == ROWS:
        raise needs_every(text, streams[0])
    keys = [tuple(map(computed, key)) for key in found.keys]
    if inner and len(streams) == 1:
        keys = [questions.first_key(streams[0].alias)]
    sides = tuple(
        Side(
            one.alias,
            one.input.stream.name,
            window,
            _own_condition([part for alias, part in filters if alias == one.alias], one.alias),
            own_attributes(key, one.alias),
            one.input.stream.time,
            _own_names(joins.reads, one.alias),
            _present(questions, one.alias, found, key),
        )
        for one, window, key in zip(streams, windows[0], keys, strict=False)
    )
    asked = tuple(
        inner_side(questions, one, window, keys) for one, window in zip(inner, windows[0][len(streams) :], strict=True)
    )
    links = tuple(tuple(computed(of) for _, of in link) for link in found.links)
    join = Join(sides, tuple(joins.sides), conjunction(pairs), asked, tuple(questions.tests), links)
    return replace(query, join=join)


def _present(
    questions: Questions, alias: str, found: JoinKeys, key: Sequence[Attribute]
) -> tuple[Attribute, ...] | None:
    """What records must have a value of: what they are joined by, and what EXISTS asks; None: the key."""
    joined = map(computed, found.linked(alias)) if found.links else key if len(found.keys) > 1 else ()
    asked = own_attributes(dict.fromkeys((*joined, *questions.present(alias))), alias)
    return None if asked == own_attributes(key, alias) else asked


# -- what cannot be


def _check_inputs(
    text: AppText, inputs: Sequence[JoinInput], streams: Sequence[JoinInput], subqueries: Sequence[Inner]
) -> None:
    if not streams:
        hint = "give FROM a stream besides: FROM packets [RANGE '1 minute'] P, owners O"
        raise text.error(inputs[0].span, "a query needs a stream, and this one reads tables alone", hint)
    if len(streams) > _MOST_STREAMS:
        fact = f"a join of more than {_MOST_STREAMS} streams is not executable"
        raise text.error(streams[_MOST_STREAMS].span, fact, _IN_TWO)
    seen: dict[str, JoinInput] = {}
    for one in (*inputs, *(asked.input for asked in subqueries)):
        if "." in one.alias or ":" in one.alias:
            raise text.error(
                one.span, f"'{one.alias}' cannot name an input of a join", "give it a name without . and :"
            )
        if one.alias.casefold() in seen:
            hint = f"tell them apart: {seen[one.alias.casefold()].input.name} AS a, {one.input.name} AS b"
            what = "the query" if subqueries else "the join"
            raise text.error(one.span, f"two inputs of {what} are called '{one.alias}'", hint)
        seen[one.alias.casefold()] = one
        if one.table and one.window is not None:
            fact = f"the table '{one.input.name}' has no time, and no window"
            raise text.error(one.window.span, fact, "leave it out: all rows of a table are joined")
        _check_outer(text, one, streams[0])


def _check_outer(text: AppText, one: JoinInput, stream: JoinInput) -> None:
    assert one.joined is not None or not one.outer
    if one.outer and one.joined is not None and (one.outer != "LEFT" or not one.table):
        what = f"{one.outer} JOIN" if one.table else f"{one.outer} JOIN of a stream"
        hint = "name the stream first, then LEFT JOIN the table" if one.table else "use JOIN: LEFT JOIN is for tables"
        raise text.error(one.joined, f"{what} is not executable", hint)
    if one.outer and one.on is None and one.joined is not None:
        column = side_column(one.alias, one.input.stream.fields[0].name)
        hint = f"say which rows belong to a record, like ON {side_column(stream.alias, 'column')} = {column}"
        raise text.error(one.joined, "LEFT JOIN needs ON", hint)


def _check_keys(text: AppText, streams: Sequence[JoinInput], found: JoinKeys) -> None:
    apart = next((one for one in streams if one.alias not in found.reached), None)
    if apart is not None:
        others = [one.alias for one in streams if one.alias in found.reached]
        told = " or ".join(f"'{alias}'" for alias in others)
        hint = f"join them by an equality: {others[0]}.column = {apart.alias}.column"
        raise text.error(apart.joined or apart.span, f"no equality joins '{apart.alias}' with {told}", hint)


def _check_prefixes(query: Query, select: Select, text: AppText, inputs: Sequence[JoinInput]) -> None:
    """Prefixes are cut out of addresses of records; those of tables are found, not read."""
    tables = {one.alias: one for one in inputs if one.table}
    for key in query.keys:
        alias, _, name = (key.attribute.column.name if isinstance(key.attribute, Prefix) else "").partition(".")
        if alias in tables:
            written = (cut for item in (*select.group, *select.items) for cut in item.expression.find_all(exp.Div))
            cuts = (span_of(cut) for cut in written if any(name == one.name for one in cut.find_all(exp.Column)))
            fact = f"prefixes of a table's column ({render(key.attribute)}) are not executable"
            hint = "cut the address of a record, or group by the whole column"
            raise text.error(next(cuts, tables[alias].span), fact, hint)


def _wrong(text: AppText) -> Callable[[JoinInput, Expression | str], QueryError]:
    def wrong(one: JoinInput, what: Expression | str) -> QueryError:
        if isinstance(what, str):
            return text.error(one.span, f"table '{one.input.name}': {what}", "mend the table, or ask for it otherwise")
        fact = f"ON of a LEFT JOIN cannot say {render(what)}"
        span = one.span if one.on is None else span_of(one.on)
        return text.error(span, fact, "compare the table with one stream there, and say the rest in WHERE")

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


def _own_names(reads: Mapping[str, frozenset[str]], alias: str) -> frozenset[str]:
    return frozenset(name.removeprefix(side_column(alias, "")) for name in reads.get(alias, ()))


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
