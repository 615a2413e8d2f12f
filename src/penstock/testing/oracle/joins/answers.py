"""The rows of a query at every instant, by DuckDB.

    bags (instant, record) of every side ──► pairs (JOIN, WHERE) ──► groups (GROUP BY instant, keys)
                                                                        └──► HAVING, ORDER BY, LIMIT, select list

All instants go through one statement each: the instant is one more column that sides must share, and one more key.
Sums of doubles and variances are made in Python, correctly rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.logical.types import TIMESTAMP, Kind, Type
from penstock.testing.oracle.answers import FLOAT_TOLERANCE, ZERO_KEY
from penstock.testing.oracle.columns import Numbers, printed, result_type
from penstock.testing.oracle.database import plain, run
from penstock.testing.oracle.joins.sides import ROW, ask_sql
from penstock.testing.oracle.joins.spec import JoinSpec
from penstock.testing.oracle.joins.terms import SQL_TYPES, AggregateOf, Term, compare, slot
from penstock.testing.oracle.sums import SPREADS, function_of

ONE = "oracle_one"


@dataclass(frozen=True)
class Inputs:
    """By alias: what each stream side holds, with `instant`; rows of tables, and which belong to which records."""

    bags: Mapping[str, pa.Table]
    tables: Mapping[str, pa.Table]
    matches: Mapping[str, pa.Table]


def answer(query: JoinSpec, inputs: Inputs, instants: Numbers, starts: Numbers) -> pa.Table:
    """The result's columns, window_start and window_end (both as in a sink), and `instant`.

    `instants` are those at which a window exists, `starts` of their windows.
    """
    pairs = pairs_of(query, inputs)
    rows = pairs if query.keys is None else groups_of(query, pairs, instants)
    windows = pa.table({"instant": instants, "window_start": starts, "window_end": instants})
    return shown(query, finished(query, rows, windows), zeros_of(query, pairs))


def aggregates_of(query: JoinSpec) -> tuple[AggregateOf, ...]:
    found = {one.text: one for term in query.group_level for one in term.aggregates}
    return tuple(found.values())


# -- pairs


def pairs_of(query: JoinSpec, inputs: Inputs) -> pa.Table:
    """One row per combination of records and rows of tables, with all keys and arguments."""
    chosen = [f"{typed(term)} AS {slot(term.text)}" for term in dict.fromkeys(query.key_terms)]
    chosen += [f"{argument_of(one)} AS {argument_slot(one)}" for one in aggregates_of(query)]
    first = query.sides[0].alias
    conditions = [term.sql for term in query.conditions]
    conditions += [ask_sql(ask, f'"{first}".instant') for ask in query.asks]
    said = [f'"{first}".instant AS instant', f'"{first}".{ROW} AS {ROW}', f"1 AS {ONE}", *chosen]
    text = f"SELECT {', '.join(said)} FROM {_joined(query)} WHERE {' AND '.join(conditions) or 'true'}"
    given = {f"bag_{alias}": table for alias, table in inputs.bags.items()}
    given |= {f"rows_{alias}": table for alias, table in inputs.tables.items()}
    given |= {f"match_{alias}": table for alias, table in inputs.matches.items()}
    return run(text, {}, **given)


def _joined(query: JoinSpec) -> str:
    first, *others = [side.alias for side in query.sides]
    text = f'bag_{first} "{first}"'
    known = {first}
    equalities = list(query.equalities)
    for alias in others:
        known.add(alias)
        ready = [pair for pair in equalities if (pair[0].sides | pair[1].sides) <= known]
        equalities = [pair for pair in equalities if pair not in ready]
        tests = [f'"{alias}".instant = "{first}".instant', *(compare("=", *pair).sql for pair in ready)]
        text += f' JOIN bag_{alias} "{alias}" ON {" AND ".join(tests)}'
    for table in query.tables:
        name, word = table.alias, "LEFT JOIN" if table.outer else "JOIN"
        rows = f"SELECT m.record, r.* FROM match_{name} m JOIN rows_{name} r ON r.{ROW} = m.row"
        text += f' {word} ({rows}) "{name}" ON "{name}".record = "{table.to}".{ROW}'
    return text


def typed(term: Term) -> str:
    value = f"CAST({term.sql} AS {SQL_TYPES[term.type.kind]})"
    # Adding zero turns -0.0 into 0.0 and leaves everything else.
    return f"({value} + 0.0)" if term.type.kind is Kind.DOUBLE else value


def argument_of(one: AggregateOf) -> str:
    value = "1" if one.argument is None else typed(one.argument)
    return value if one.test is None else f"(CASE WHEN {one.test.sql} THEN {value} END)"


def argument_slot(one: AggregateOf) -> str:
    return f"a{one.slot}"


# -- groups


def groups_of(query: JoinSpec, pairs: pa.Table, instants: Numbers) -> pa.Table:
    keys = [slot(term.text) for term in dict.fromkeys(query.key_terms)]
    aggregates = aggregates_of(query)
    chosen = ["instant", *keys, *(f"{_computed(one)} AS {one.slot}" for one in aggregates)]
    source = "pairs"
    if not keys:  # an existing window without pairs gives a row, too
        source = "(SELECT instants.instant, pairs.* EXCLUDE (instant) FROM instants LEFT JOIN pairs USING (instant))"
    text = f"SELECT {', '.join(chosen)} FROM {source} GROUP BY {', '.join(['instant', *keys])}"
    groups = run(text, {}, pairs=pairs, instants=pa.table({"instant": instants}))
    for one in aggregates:
        if _in_python(one):
            at = groups.schema.get_field_index(one.slot)
            function = function_of(one.function)
            values = [function(numbers) if numbers else None for numbers in groups.column(at).to_pylist()]
            groups = groups.set_column(at, one.slot, pa.array(values, pa.float64()))
    return groups


def _in_python(one: AggregateOf) -> bool:
    double = one.argument is not None and one.argument.type.kind is Kind.DOUBLE
    return one.function in SPREADS or (double and one.function in ("sum", "avg"))


def _computed(one: AggregateOf) -> str:
    column = argument_slot(one)
    inside = f"DISTINCT {column}" if one.distinct else column
    if _in_python(one):
        return f"list({inside}) FILTER ({column} IS NOT NULL)"
    # DuckDB sums BIGINT as HUGEINT; the cast raises where the end does not fit.
    return f"CAST(sum({inside}) AS BIGINT)" if one.function == "sum" else f"{one.function}({inside})"


# -- results


def finished(query: JoinSpec, rows: pa.Table, windows: pa.Table) -> pa.Table:
    select = [
        f"CAST({_result(query, output.term)} AS {SQL_TYPES[output.term.type.kind]}) AS o{i}"
        for i, output in enumerate(query.outputs)
    ]
    having = "true" if query.having is None else query.having.sql
    kept = f"SELECT * FROM found JOIN windows USING (instant) WHERE {having}"
    if query.limit is not None:
        place = f"row_number() OVER (PARTITION BY instant{_order(query)})"
        kept = f"SELECT * FROM (SELECT *, {place} AS place FROM ({kept})) WHERE place <= {query.limit}"
    text = f"SELECT {', '.join([*select, 'window_start', 'window_end', 'instant'])} FROM ({kept})"
    return run(text, {}, found=rows, windows=windows)


def _result(query: JoinSpec, term: Term) -> str:
    return slot(term.text) if query.keys is None else term.sql


def _order(query: JoinSpec) -> str:
    """NULL below everything (DuckDB itself puts NaN above every number), ties by the keys."""
    entries = [f"{e.term.sql} {'DESC NULLS LAST' if e.descending else 'ASC NULLS FIRST'}" for e in query.order]
    entries += [f"{slot(term.text)} ASC NULLS FIRST" for term in query.key_terms]
    return f" ORDER BY {', '.join(entries)}" if entries else ""


def shown(query: JoinSpec, found: pa.Table, zeros: Mapping[str, float]) -> pa.Table:
    outputs: list[tuple[str, Type]] = [(output.name, output.term.type) for output in query.outputs]
    outputs += [("window_start", TIMESTAMP), ("window_end", TIMESTAMP)]
    columns, fields = [], []
    for (name, kind), column in zip(outputs, found.columns, strict=False):
        metadata = {ZERO_KEY: repr(zeros[name]).encode()} if name in zeros else None
        fields.append(pa.field(name, result_type(kind), metadata=metadata))
        array = plain(column)
        if kind.kind in (Kind.INET, Kind.PREFIX):
            array = printed(array.cast(pa.string()))
        columns.append(array.cast(result_type(kind)))
    fields.append(pa.field("instant", pa.int64()))
    columns.append(plain(found.column("instant")))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def zeros_of(query: JoinSpec, pairs: pa.Table) -> dict[str, float]:
    """How far rounding may be from a true zero: of a variance by 1e-18 of the square of the greatest value."""
    allowed: dict[str, float] = {}
    for output in query.outputs:
        one = next((a for a in output.term.aggregates if a.term == output.term), None)
        if one is not None and one.function in SPREADS:
            deviation = FLOAT_TOLERANCE * _greatest(pairs.column(argument_slot(one)))
            allowed[output.name] = deviation if one.function.startswith("stddev") else deviation * deviation
    return allowed


def _greatest(column: pa.ChunkedArray) -> float:
    """The greatest finite magnitude."""
    numbers = np.abs(column.cast(pa.float64(), safe=False).drop_null().to_numpy())
    return float(numbers[np.isfinite(numbers)].max(initial=0.0))
