"""A spec as the text of an app.

The same query can be said in several ways: sides after commas with all conditions in WHERE, or by JOIN … ON; windows
with their own slides, or EVERY for all.  `Manner` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.testing.oracle.joins.spec import (
    LANDMARK,
    RANGE,
    ROWS,
    AppSpec,
    Ask,
    JoinSpec,
    Side,
    StreamSpec,
    TableSide,
    TableSpec,
)
from penstock.testing.oracle.joins.terms import bare, compare

UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))
SMALLER = (("millisecond", 1_000), ("microsecond", 1))


@dataclass(frozen=True)
class Manner:
    """`commas`: sides after commas; `every`: EVERY instead of slides; `word` begins a bracket with a range."""

    commas: bool = True
    every: bool = True
    word: str = "RANGE"


def app_text(app: AppSpec, sources: Mapping[str, str], manners: Mapping[str, Manner] | None = None) -> str:
    """`sources` are the URIs of streams and tables by name."""
    statements = [_stream(stream, sources[stream.name]) for stream in app.streams]
    statements += [_table(table, sources[table.name]) for table in app.tables]
    chosen = manners or {}
    for query in app.queries:
        if not query.hidden:
            statements.append(f"CREATE QUERY {query.name} AS\n{_whole(app, query, chosen)}")
    return ";\n".join(statements) + ";\n"


def duration(microseconds: int) -> str:
    """In the largest unit in which it is whole.

    >>> duration(90_000_000), duration(3_600_000_000), duration(1_500)
    ('90 seconds', '1 hour', '1500 microseconds')
    """
    for name, size in (*UNITS, *SMALLER):
        count, rest = divmod(microseconds, size)
        if not rest and (count or size == 1):
            return f"{count} {name}{'' if count == 1 else 's'}"
    raise ValueError(f"no duration: {microseconds}")


def _stream(stream: StreamSpec, source: str) -> str:
    fields = ", ".join(f"{field.name} {field.type}" for field in stream.fields)
    text = f"CREATE STREAM {stream.name} ({fields})\n  FROM '{source}'"
    if stream.delay is None:
        return text
    ahead = "" if stream.ahead is None else f" MAX AHEAD '{duration(stream.ahead)}'"
    return f"{text}\n  WATERMARK {stream.time} DELAY '{duration(stream.delay)}'{ahead}"


def _table(table: TableSpec, source: str) -> str:
    fields = ", ".join(f"{field.name} {field.type}" for field in table.fields)
    options = " WITH (match = 'longest')" if table.longest else ""
    return f"CREATE TABLE {table.name} ({fields})\n  FROM '{source}'{options}"


def _whole(app: AppSpec, query: JoinSpec, manners: Mapping[str, Manner]) -> str:
    inner = [app.query(side.source) for side in query.streams if not app.stream(side.source)]
    hidden = {one.name: one for one in inner if one.hidden}
    parts = [f"{name} AS (\n{select_text(one, manners.get(name, Manner()))})" for name, one in hidden.items()]
    prologue = f"  WITH {', '.join(parts)}\n" if parts else ""
    return prologue + select_text(query, manners.get(query.name, Manner()))


def select_text(query: JoinSpec, manner: Manner) -> str:
    """A query without what it reads."""
    every = _every(query, manner)
    conditions = [bare(term) for term in query.conditions]
    if manner.commas and not any(table.outer for table in query.tables):
        source = ", ".join([*(_side(s, query, manner) for s in query.sides), *(_named(t) for t in query.tables)])
        joins = [compare("=", *pair).text for pair in query.equalities]
        joins += [text for table in query.tables for text in _table_conditions(table)]
        conditions = [*joins, *conditions]
    else:
        source = _by_joins(query, manner)
    conditions += [ask_text(ask, query, manner) for ask in query.asks]
    clauses = [
        f"SELECT {_select_list(query)}",
        f"FROM {source}",
        f"WHERE {' AND '.join(_operand(text) for text in conditions)}" if conditions else "",
        _group(query),
        f"HAVING {bare(query.having)}" if query.having is not None else "",
        f"EVERY {duration(query.slide)}" if every else "",
        _order(query),
    ]
    return "\n".join(f"  {clause}" for clause in clauses if clause)


def _operand(text: str) -> str:
    return f"({text})" if " OR " in text else text


def ask_text(ask: Ask, query: JoinSpec, manner: Manner) -> str:
    """A subquery with what asks it."""
    source = f"{ask.table} AS {ask.alias}" if ask.side is None else _side(ask.side, query, manner)
    where = f" WHERE {' AND '.join(_operand(bare(term)) for term in ask.tests)}" if ask.tests else ""
    shown, negated = "1" if ask.member is None else bare(ask.member[1]), "NOT " if ask.negated else ""
    asked = "EXISTS" if ask.member is None else "IN"
    before = "" if ask.member is None else f"{ask.member[0].text} "
    return f"{before}{negated}{asked} (SELECT {shown} FROM {source}{where})"


def _by_joins(query: JoinSpec, manner: Manner) -> str:
    first, *others = query.sides
    text, known = _side(first, query, manner), {first.alias}
    left = list(query.equalities)
    for side in others:
        known.add(side.alias)
        ready = [pair for pair in left if (pair[0].sides | pair[1].sides) <= known]
        left = [pair for pair in left if pair not in ready]
        on = " AND ".join(compare("=", *pair).text for pair in ready)
        text += f"\n    JOIN {_side(side, query, manner)} ON {on}"
    for table in query.tables:
        word = "LEFT JOIN" if table.outer else "JOIN"
        on = " AND ".join(_operand(part) for part in _table_conditions(table))
        text += f"\n    {word} {_named(table)} ON {on}"
    return text


def _table_conditions(table: TableSide) -> list[str]:
    return [*(compare(tie.operator, tie.record, tie.row).text for tie in table.ties), *map(bare, table.own)]


def _named(table: TableSide) -> str:
    return f"{table.table} AS {table.alias}"


def _side(side: Side, query: JoinSpec, manner: Manner) -> str:
    return f"{side.source} AS {side.alias} {_window(side, query, manner)}"


def _window(side: Side, query: JoinSpec, manner: Manner) -> str:
    if side.window.kind == LANDMARK:
        return "[WINDOW UNTIL NOW]"
    if side.window.kind == ROWS:
        return f"[ROWS {side.window.size}]"
    size, slide = duration(side.window.size), duration(query.slide)
    # A range alone is its own slide.
    if _every(query, manner) or (size == slide and manner.word == "WINDOW"):
        return f"[{manner.word} '{size}']"
    return f"[RANGE '{size}' SLIDE '{slide}']"


def _every(query: JoinSpec, manner: Manner) -> bool:
    kinds = {side.window.kind for side in query.streams}
    return manner.every or ROWS in kinds or RANGE not in kinds


def _select_list(query: JoinSpec) -> str:
    if query.star:
        return "*"
    return ", ".join(
        output.said if output.said is not None else f"{bare(output.term)} AS {output.name}" for output in query.outputs
    )


def _group(query: JoinSpec) -> str:
    if not query.keys:
        return ""
    entries = [bare(key.term) if key.name is None else f"{bare(key.term)} AS {key.name}" for key in query.keys]
    return f"GROUP BY {', '.join(entries)}"


def _order(query: JoinSpec) -> str:
    entries = [f"{bare(e.term)}{' DESC' if e.descending else ''}" for e in query.order]
    order = f"ORDER BY {', '.join(entries)}" if entries else ""
    limit = f"LIMIT {query.limit}" if query.limit is not None else ""
    return " ".join(part for part in (order, limit) if part)
