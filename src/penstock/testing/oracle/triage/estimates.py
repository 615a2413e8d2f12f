"""From the records that were read to groups: every aggregate over what was read, and over all that it stands for.

    pairs (record, window) ──► once, weight times, weight − 1 times ──► groups ──► one beside the other (`groups`)

The weights of picks add up to the records of their ranges, so that the longest of these tables has no more rows than
the stream's records have windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.logical.expressions import (
    ERROR,
    ESTIMATED,
    EXACT,
    Aggregate,
    Bucket,
    Column,
    Computed,
    Expression,
    Prefix,
    Triaged,
    WindowEnd,
    children,
    walk,
)
from penstock.logical.query import WEIGHT, Key, OutputColumn, Query
from penstock.logical.render import render
from penstock.logical.types import DOUBLE
from penstock.testing.oracle.answers import groups_of, names_of, records_of
from penstock.testing.oracle.attributes import Prepared
from penstock.testing.oracle.columns import Numbers
from penstock.testing.oracle.database import NamedTable, run
from penstock.testing.oracle.triage.groups import Asked, Made, Picked, estimated, part_of
from penstock.testing.oracle.triage.linear import Summand

Names = dict[Expression, str]


@dataclass(frozen=True)
class Read:
    """The records of a query that count: (record, window), with weight and k."""

    rows: Numbers
    windows: Numbers
    weights: Numbers
    steps: Numbers

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
    if _has_aggregates(output):
        for one in _estimates_of(output.expression):
            yield OutputColumn(f"{one.what}_{output.name}", one)


def _has_aggregates(output: OutputColumn) -> bool:
    return any(isinstance(part, Aggregate) for part in walk(output.expression))


def _estimates_of(of: Expression) -> tuple[Triaged, Triaged, Triaged]:
    return Triaged(of, EXACT, of.type), Triaged(of, ESTIMATED, of.type), Triaged(of, ERROR, DOUBLE)


# -- groups


def groups_with_estimates(
    query: Query, prepared: Prepared, read: Read, picked: Picked
) -> tuple[pa.Table, Names, dict[str, float]]:
    """Groups with a column for all that the select list asks for, how these are called, and scales of errors by
    output."""
    names = names_of(query)
    if query.per_tuple:
        return records_of(query, prepared, read.pairs(), names), names, {}
    translator = NamedTable(names)
    plain = [output for output in query.select if not isinstance(output.expression, Triaged)]
    wanted = [output for output in plain if _has_aggregates(output)]
    asked = [_asked(output, translator) for output in wanted]
    weighted, once, rest = (
        groups_of(query, prepared, read.pairs(times), names) for times in (read.weights, 1, read.weights - 1)
    )
    by = ["window_number", *dict.fromkeys(names[key.attribute] for key in query.keys)]
    made = Made(by, weighted, once, rest, _parts(query, prepared, read, names), translator.parameters)
    groups, scales = estimated(made, asked, picked)
    for i, output in enumerate(wanted):
        columns = (f"exact{i}", f"estimated{i}", f"error{i}")
        names |= zip(_estimates_of(output.expression), columns, strict=True)
    return groups, names, scales


def _asked(output: OutputColumn, translator: NamedTable) -> Asked:
    of = output.expression
    sql = translator.sql(of)
    if isinstance(of, Aggregate) and not of.distinct:
        return Asked(output.name, sql, of.type, of.function, translator.names[of])
    return Asked(output.name, sql, of.type, parts=tuple(_summands(of, translator.names)))


def _summands(of: Expression, names: Mapping[Expression, str]) -> Iterator[Summand]:
    """The aggregates of an expression, unless it has keys, too."""
    for part in _groups_of(of):
        if not isinstance(part, Aggregate):
            yield Summand("", "", "", part.type)
        else:
            argument = "" if part.argument is None else f"{render(part.argument)} {part.test}"
            yield Summand("" if part.distinct else part.function, argument, names[part], part.type)


def _groups_of(of: Expression) -> dict[Expression, None]:
    """What an expression asks of a group: aggregates and keys."""
    if isinstance(of, Aggregate | Column | Computed | Prefix | Bucket | WindowEnd):
        return {of: None}
    return {part: None for child in children(of) for part in _groups_of(child)}


def _parts(query: Query, prepared: Prepared, read: Read, names: Names) -> pa.Table:
    """Per group lists of what its records add to each aggregate."""
    keys = [f"{prepared.names[key.attribute]} AS {names[key.attribute]}" for key in query.keys]
    lists = [f"{part_of('row', 'step', _value(a, prepared))} AS {names[a]}" for a in query.aggregates]
    by = ", ".join(["window_number", *(prepared.names[key.attribute] for key in query.keys)])
    text = f"SELECT {', '.join(['window_number', *keys, *lists])} FROM pairs JOIN input USING (row) GROUP BY {by}"
    return run(text, {}, pairs=read.pairs(), input=prepared.table)


def _value(aggregate: Aggregate, prepared: Prepared) -> str:
    if aggregate.argument is None:
        return "1"
    column = prepared.names[aggregate.argument]
    return f"CAST({column} IS NOT NULL AS BIGINT)" if aggregate.function == "count" else column
