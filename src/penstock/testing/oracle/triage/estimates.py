"""From what was read to rows: every aggregate over it, over all it stands for, and over what was not read.

    pairs (record, window) ──┬──► once each             ──► exact_x
                             ├──► weight times          ──► x; HAVING, ORDER BY, LIMIT
                             ├──► weight − 1 times      ──► estimated_x of counts and sums
                             └──► lists of the values   ──► error_x of counts, sums and averages

The weights of picks add up to the records of their ranges, so that the longest of these tables has no more rows than
the stream's records have windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.logical.expressions import ERROR, ESTIMATED, EXACT, Aggregate, Expression, Triaged, walk
from penstock.logical.query import WEIGHT, Key, OutputColumn, Query
from penstock.logical.types import DOUBLE, Kind
from penstock.testing.oracle.answers import (
    FLOAT_TOLERANCE,
    RELATIVE_KEY,
    ZERO_KEY,
    greatest,
    groups_of,
    names_of,
    records_of,
)
from penstock.testing.oracle.attributes import Prepared
from penstock.testing.oracle.columns import Numbers
from penstock.testing.oracle.database import NamedTable, run
from penstock.testing.oracle.duck import SQL_TYPES
from penstock.testing.oracle.triage.errors import Error, Part, error_of_average, error_of_total

ERROR_TOLERANCE = 1e-6  # relative, of standard errors
TOTALS, ESTIMATED_BY = ("count", "sum"), ("count", "sum", "avg")
Sizes = Mapping[int, Mapping[int, int]]  # by window and k: the stream's picks
Names = dict[Expression, str]


@dataclass(frozen=True)
class Read:
    """The records of a query that count: (record, window), with weight and k. Of the whole stream the picks of every
    window, and the windows of which something was dropped."""

    rows: Numbers
    windows: Numbers
    weights: Numbers
    steps: Numbers
    sizes: Sizes
    holed: frozenset[int]

    def pairs(self, times: Numbers | int = 1) -> pa.Table:
        columns = {"row": self.rows, "window_number": self.windows, "step": self.steps}
        return pa.table({name: np.repeat(column, times) for name, column in columns.items()})


# -- what is asked


def said_plainly(query: Query) -> Query:
    """The query as its text says it without LIMIT DELAY."""
    select = tuple(o for o in query.select if not isinstance(o.expression, Triaged) and o.expression != WEIGHT)
    keys = tuple(key for key in query.keys if key.attribute != WEIGHT)
    return replace(query, select=select, keys=keys, promise=None)


def with_estimates(query: Query) -> Query:
    """A query that is said plainly, with the columns that LIMIT DELAY adds."""
    if query.per_tuple:
        keys = (*query.keys, Key("weight", WEIGHT))
        return replace(query, select=(*query.select, OutputColumn("weight", WEIGHT)), keys=keys)
    return replace(query, select=tuple(column for output in query.select for column in _with_estimates(output)))


def _with_estimates(output: OutputColumn) -> Iterator[OutputColumn]:
    yield output
    of = output.expression
    if any(isinstance(part, Aggregate) for part in walk(of)):
        for what, kind in ((EXACT, of.type), (ESTIMATED, of.type), (ERROR, DOUBLE)):
            yield OutputColumn(f"{what}_{output.name}", Triaged(of, what, kind))


# -- groups


def groups_with_estimates(query: Query, prepared: Prepared, read: Read) -> tuple[pa.Table, Names, dict[str, float]]:
    """Groups with a column for all that the select list asks for, how these are called, and scales of errors by output
    (see `errors`)."""
    names = names_of(query)
    if query.per_tuple:
        return records_of(query, prepared, read.pairs(), names), names, {}
    asked = {o.expression: o.name for o in query.select if isinstance(o.expression, Triaged)}
    wanted = {of: f"{i}" for i, of in enumerate(dict.fromkeys(one.of for one in asked))}
    by = ["window_number", *dict.fromkeys(names[key.attribute] for key in query.keys)]
    groups = groups_of(query, prepared, read.pairs(read.weights), names)
    once = groups_of(query, prepared, read.pairs(), names)
    groups = _beside(groups, _computed(wanted, once, names, by), by)
    rest = groups_of(query, prepared, read.pairs(read.weights - 1), names)
    rest = rest.select([*by, *(names[a] for a in query.aggregates)])
    groups = _beside(groups, rest.rename_columns([*by, *(f"rest_{names[a]}" for a in query.aggregates)]), by)
    groups = _beside(groups, _parts(query, prepared, read, names, by), by)
    groups = run(f"SELECT *{''.join(_estimate(of, i, names) for of, i in wanted.items())} FROM input", {}, input=groups)
    scales: dict[str, float] = {}
    for of, i in wanted.items():
        errors = _errors(groups, of, names, read)
        groups = groups.append_column(f"error{i}", pa.array([error.value for error in errors], pa.float64()))
        if Triaged(of, ERROR, DOUBLE) in asked:
            scales[asked[Triaged(of, ERROR, DOUBLE)]] = max((error.scale for error in errors), default=0.0)
        names |= {Triaged(of, EXACT, of.type): f"exact{i}", Triaged(of, ESTIMATED, of.type): f"estimated{i}"}
        names[Triaged(of, ERROR, DOUBLE)] = f"error{i}"
    return groups, names, scales


def _beside(groups: pa.Table, other: pa.Table, by: list[str]) -> pa.Table:
    """More columns of the same groups; NULL where the other table has no such group."""
    ties = " AND ".join(f"g.{name} IS NOT DISTINCT FROM o.{name}" for name in by)
    added = "".join(f", o.{name}" for name in other.schema.names if name not in by)
    return run(f"SELECT g.*{added} FROM groups g LEFT JOIN other o ON {ties}", {}, groups=groups, other=other)


def _computed(wanted: Mapping[Expression, str], groups: pa.Table, names: Names, by: list[str]) -> pa.Table:
    """The expressions as they are where every record counts once."""
    translator = NamedTable(names)
    chosen = [f"CAST({translator.sql(of)} AS {SQL_TYPES[of.type.kind]}) AS exact{i}" for of, i in wanted.items()]
    return run(f"SELECT {', '.join([*by, *chosen])} FROM input", translator.parameters, input=groups)


def _estimate(of: Expression, place: str, names: Names) -> str:
    """What counts and sums are over all that was not read."""
    if not (isinstance(of, Aggregate) and of.function in TOTALS):
        return f", CAST(NULL AS {SQL_TYPES[of.type.kind]}) AS estimated{place}"
    value, exact = names[of], f"exact{place}"
    odd = ""
    if of.type.kind is Kind.DOUBLE:  # infinities and NaN
        odd = f" WHEN NOT (isfinite({value}) AND isfinite({exact})) THEN {value} - {exact}"
    return f", CASE WHEN {value} IS NULL THEN NULL{odd} ELSE coalesce(rest_{value}, 0) END AS estimated{place}"


# -- errors


def _parts(query: Query, prepared: Prepared, read: Read, names: Names, by: list[str]) -> pa.Table:
    """Per group lists of what its records add to counts, sums and averages."""
    lists = []
    for aggregate in query.aggregates:
        if aggregate.function in ESTIMATED_BY:
            part = f"{{'record': row, 'step': step, 'value': {_value(aggregate, prepared)}}}"
            lists.append(f"list({part}) AS parts_{names[aggregate]}")
    keys = [f"{prepared.names[key.attribute]} AS {names[key.attribute]}" for key in query.keys]
    grouped = ", ".join(["window_number", *(prepared.names[key.attribute] for key in query.keys)])
    text = f"SELECT {', '.join(['window_number', *keys, *lists])} FROM pairs JOIN input USING (row) GROUP BY {grouped}"
    found = run(text, {}, pairs=read.pairs(), input=prepared.table)
    return found.select([*by, *(name for name in found.schema.names if name.startswith("parts_"))])


def _value(aggregate: Aggregate, prepared: Prepared) -> str:
    if aggregate.argument is None:
        return "1"
    column = prepared.names[aggregate.argument]
    return f"CAST({column} IS NOT NULL AS BIGINT)" if aggregate.function == "count" else column


def _errors(groups: pa.Table, of: Expression, names: Names, read: Read) -> list[Error]:
    if not (isinstance(of, Aggregate) and of.function in ESTIMATED_BY and not of.distinct):
        return [Error(None)] * groups.num_rows
    error_of = error_of_average if of.function == "avg" else error_of_total
    lists = groups.column(f"parts_{names[of]}").to_pylist()
    return [
        Error(None) if window in read.holed else error_of(map(_part, parts), read.sizes.get(window, {}))
        for window, parts in zip(groups.column("window_number").to_pylist(), lists, strict=True)
    ]


def _part(told: Mapping[str, int]) -> Part:
    return Part(told["record"], told["step"], told["value"])


# -- results


def with_tolerances(rows: pa.Table, scales: Mapping[str, float]) -> pa.Table:
    """Errors are roots of differences: one that is truly zero may be off by the root of what rounding leaves."""
    fields = []
    names = set(rows.schema.names)
    for field in rows.schema:
        told = dict(field.metadata or {})
        what, _, of = field.name.partition("_")
        if field.name in scales:
            told = {RELATIVE_KEY: repr(ERROR_TOLERANCE), ZERO_KEY: repr(ERROR_TOLERANCE * scales[field.name])}
        elif what == EXACT and of in names:
            told |= rows.schema.field(of).metadata or {}
        elif what == ESTIMATED and of in names and pa.types.is_floating(field.type):
            told[ZERO_KEY] = repr(FLOAT_TOLERANCE * greatest(rows.column(of)))
        fields.append(field.with_metadata(told))
    return rows.cast(pa.schema(fields))
