"""A side of a query: its records as DuckDB sees them, and what becomes of each.

    raw table ──► values (typed, prefixes) ──► fits? ──► passes? ──► late? ──► verdict

A record is malformed where its time or any value that the query reads of this side does not fit; filtered where a
conjunct of this side is not true, a join key is NULL, an inner table has no row for it, or no window holds it; late as
`bags` says; else exact, with or without partners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.testing.oracle.columns import Flags, prefixes, read_column
from penstock.testing.oracle.database import run
from penstock.testing.oracle.expected import Verdict, Verdicts
from penstock.testing.oracle.joins.bags import Stay
from penstock.testing.oracle.joins.spec import Ask, FieldSpec, JoinSpec
from penstock.testing.oracle.joins.terms import Use, alike

ROW = "oracle_row"


@dataclass(frozen=True)
class Values:
    """One column per use, and the number of each record; `fits`: all values that are read fit their types."""

    table: pa.Table
    fits: Flags


def values_of(data: pa.Table, fields: tuple[FieldSpec, ...], alias: str, uses: frozenset[Use]) -> Values:
    """What a query reads of a stream, of results or of a table."""
    types = {field.name: field.type for field in fields}
    table = pa.table({ROW: pa.array(np.arange(data.num_rows, dtype=np.int64))})
    fits = np.ones(data.num_rows, np.bool_)
    for use in sorted((use for use in uses if use.alias == alias), key=lambda use: use.stored):
        read = read_column(data.column(use.column), types[use.column])
        fits = fits & read.fits
        array = read.array if use.length is None else prefixes(read.array, use.length)
        table = table.append_column(use.stored, array)
    return Values(table, fits)


def verdicts(
    query: JoinSpec,
    alias: str,
    values: Values,
    stay: Stay,
    matches: Mapping[str, pa.Table],
    tables: Mapping[str, pa.Table],
) -> Verdicts:
    """Malformed is judged first, then filtered, then late. `matches` are by the alias of the table, see `tables`."""
    found = np.full(values.table.num_rows, Verdict.EXACT, np.int8)
    found[~stay.open] = Verdict.LATE
    found[~(stay.inside & passes(query, alias, values.table, matches, tables))] = Verdict.FILTERED
    found[~(stay.course.good & values.fits)] = Verdict.MALFORMED
    return found


def passes(
    query: JoinSpec, alias: str, side: pa.Table, matches: Mapping[str, pa.Table], tables: Mapping[str, pa.Table]
) -> Flags:
    """Which records have all that is asked of this side alone."""
    tests = [f"({term.sql})" for term in query.own_conditions(alias)]
    tests += [f"({term.sql} IS NOT NULL)" for term in query.join_keys(alias)]
    first = query.sides[0].alias
    asked = [ask for ask in query.asks if ask.side is None and (ask.to or first) == alias]
    tests += [ask_sql(ask) for ask in asked]
    text = f'SELECT {ROW} AS found FROM side "{alias}" WHERE {" AND ".join(tests) or "true"}'
    given = {f"rows_{ask.alias}": tables[ask.alias] for ask in asked}
    flags = _marked(run(text, {}, side=side, **given).column("found"), side.num_rows)
    for table in query.tables:
        if table.to == alias and not table.outer:
            flags &= _marked(matches[table.alias].column("record"), side.num_rows)
    return flags


def ask_sql(ask: Ask, instant: str = "") -> str:
    """A subquery as DuckDB is asked: over the rows of a table, or over what a side holds at an instant."""
    source = f"rows_{ask.alias}" if ask.side is None else f"bag_{ask.alias}"
    tests = [term.sql for term in ask.tests]
    tests += [] if ask.side is None else [f'"{ask.alias}".instant = {instant}']
    rest = f'FROM {source} "{ask.alias}" WHERE {" AND ".join(tests) or "true"}'
    word = "NOT " if ask.negated else ""
    if ask.member is None:
        return f"({word}EXISTS (SELECT 1 {rest}))"
    one, other = alike(*ask.member)
    return f"({one} {word}IN (SELECT {other} {rest}))"


def _marked(rows: pa.ChunkedArray, count: int) -> Flags:
    flags = np.zeros(count, np.bool_)
    flags[rows.to_numpy()] = True
    return flags
