"""The rows of a query from the records that count in its windows.

(record, window) ──► groups (DuckDB; sums of doubles and variances in Python) ──► HAVING ──► ORDER BY, LIMIT
                 └─► the records themselves, for a query with one row per record ──┘           └─► select list
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.logical.expressions import Aggregate, Bucket, Expression, WindowEnd
from penstock.logical.query import Query
from penstock.logical.types import TIMESTAMP, Kind, Type
from penstock.testing.oracle.attributes import Prepared
from penstock.testing.oracle.columns import Flags, Numbers, printed, result_type
from penstock.testing.oracle.database import NamedTable, plain, run
from penstock.testing.oracle.details import is_detailed, result_of
from penstock.testing.oracle.duck import SQL_TYPES
from penstock.testing.oracle.membership import Membership
from penstock.testing.oracle.sums import SPREADS, function_of

FLOAT_TOLERANCE = 1e-9  # relative, of sums, averages and variances of doubles
ZERO_KEY = b"penstock.zero"  # metadata of a result column: how far from a true zero a value may be
NEAR_KEY = b"penstock.near"  # and how far from any value at all
RELATIVE_KEY = b"penstock.relative"  # and how far from any other, relative to it, where that is not FLOAT_TOLERANCE


@dataclass(frozen=True)
class OracleAnswer:
    """The rows that a query must give, the batch in which each must come, and the account of every window."""

    table: pa.Table
    arrived: Numbers
    windows: list[dict[str, int]]


def answer(query: Query, prepared: Prepared, membership: Membership, exact: Flags) -> OracleAnswer:
    """Rows of all windows, from the records in `exact`."""
    rows, windows = membership.pairs(exact)
    names = names_of(query)
    pairs = pa.table({"row": rows, "window_number": windows})
    groups = records_of(query, prepared, pairs, names) if query.per_tuple else groups_of(query, prepared, pairs, names)
    found = finished(query, with_bounds(groups, membership), names)
    emitted = np.asarray(found.column("window_number").to_numpy(), np.int64)
    zeros = zeros_of(query, prepared, exact)
    table = shown(query, found, zeros)
    return OracleAnswer(table, membership.closing(emitted), window_accounts(membership, windows, emitted))


def names_of(query: Query) -> dict[Expression, str]:
    """How the tables of groups, and of records, call what select list, HAVING and ORDER BY ask for."""
    names: dict[Expression, str] = {Bucket(): "window_number", WindowEnd(): "window_end"}
    names |= {key.attribute: f"k{i}" for i, key in enumerate(query.keys)}
    return names | {aggregate: f"a{i}" for i, aggregate in enumerate(query.aggregates)}


def with_bounds(groups: pa.Table, membership: Membership) -> pa.Table:
    numbers = np.asarray(groups.column("window_number").to_numpy(), np.int64)
    for name, times in zip(("window_start", "window_end"), membership.bounds(numbers), strict=True):
        groups = groups.append_column(name, pa.array(times, pa.int64()))
    return groups


def window_accounts(membership: Membership, counted: Numbers, emitted: Numbers) -> list[dict[str, int]]:
    """Per window, ascending: the records that count in it (`counted` has their windows), and rows after all clauses."""
    numbers, exact = np.unique(counted, return_counts=True)
    starts, ends = membership.bounds(numbers)
    rows = Counter(emitted.tolist())
    return [
        {"window": number, "start": start, "end": end, "rows": rows[number], "exact": count, "triaged": 0}
        for number, start, end, count in zip(*(a.tolist() for a in (numbers, starts, ends, exact)), strict=True)
    ]


# -- records and groups


def records_of(query: Query, prepared: Prepared, pairs: pa.Table, names: Mapping[Expression, str]) -> pa.Table:
    keys = [f"{prepared.names[key.attribute]} AS {names[key.attribute]}" for key in query.keys]
    text = f"SELECT {', '.join(['window_number', *keys])} FROM pairs JOIN input USING (row)"
    return run(text, {}, pairs=pairs, input=prepared.table)


def groups_of(query: Query, prepared: Prepared, pairs: pa.Table, names: Mapping[Expression, str]) -> pa.Table:
    inputs = prepared.names
    keys = [f"{inputs[key.attribute]} AS {names[key.attribute]}" for key in query.keys]
    aggregates = [f"{_aggregate_sql(a, inputs)} AS {names[a]}" for a in query.aggregates]
    by = ["window_number", *(inputs[key.attribute] for key in query.keys)]
    chosen = f"SELECT {', '.join(['window_number', *keys, *aggregates])}"
    text = f"{chosen} FROM pairs JOIN input USING (row) GROUP BY {', '.join(by)}"
    groups = run(text, {}, pairs=pairs, input=prepared.table)
    for aggregate in query.aggregates:
        at = groups.schema.get_field_index(names[aggregate])
        if is_detailed(aggregate):
            made = [result_of(aggregate, values or ()) for values in groups.column(at).to_pylist()]
            groups = groups.set_column(at, names[aggregate], pa.array(made, _stored_type(aggregate.type)))
        elif _in_python(aggregate):
            function = function_of(aggregate.function)
            values = [function(numbers) if numbers else None for numbers in groups.column(at).to_pylist()]
            groups = groups.set_column(at, names[aggregate], pa.array(values, pa.float64()))
    return groups


def _stored_type(kind: Type) -> pa.DataType:
    return pa.float64() if kind.kind is Kind.DOUBLE else pa.int64()


def _in_python(aggregate: Aggregate) -> bool:
    double = aggregate.argument is not None and aggregate.argument.type.kind is Kind.DOUBLE
    return aggregate.function in SPREADS or (double and aggregate.function in ("sum", "avg"))


def _aggregate_sql(aggregate: Aggregate, inputs: Mapping[Expression, str]) -> str:
    if aggregate.argument is None:
        return "count(*)"
    column = inputs[aggregate.argument]
    if is_detailed(aggregate):
        only = "" if aggregate.test is None else f" AND {inputs[aggregate.test]}"
        return f"list({column}) FILTER ({column} IS NOT NULL{only})"
    if _in_python(aggregate):
        return f"list({column}) FILTER ({column} IS NOT NULL)"
    # DuckDB sums BIGINT as HUGEINT; the cast raises where the end does not fit.
    return f"CAST(sum({column}) AS BIGINT)" if aggregate.function == "sum" else f"{aggregate.function}({column})"


# -- results


def finished(query: Query, groups: pa.Table, names: Mapping[Expression, str]) -> pa.Table:
    translator = NamedTable(names)
    select = [
        f"CAST({translator.sql(output.expression)} AS {SQL_TYPES[output.expression.type.kind]}) AS o{i}"
        for i, output in enumerate(query.select)
    ]
    having = "true" if query.having is None else translator.sql(query.having)
    kept = f"SELECT * FROM input WHERE {having}"
    if query.limit is not None:
        place = f"row_number() OVER (PARTITION BY window_number{_order(query, translator)})"
        kept = f"SELECT * FROM (SELECT *, {place} AS place FROM ({kept})) WHERE place <= {query.limit}"
    text = f"SELECT {', '.join([*select, 'window_start', 'window_end', 'window_number'])} FROM ({kept})"
    return run(text, translator.parameters, input=groups)


def _order(query: Query, translator: NamedTable) -> str:
    """NULL below everything (DuckDB itself puts NaN above every number), ties by the keys."""
    entries = [
        f"{translator.sql(entry.expression)} {'DESC NULLS LAST' if entry.descending else 'ASC NULLS FIRST'}"
        for entry in query.order
    ]
    entries += [f"{translator.names[key.attribute]} ASC NULLS FIRST" for key in query.keys]
    return f" ORDER BY {', '.join(entries)}" if entries else ""


def shown(query: Query, found: pa.Table, zeros: Mapping[str, float]) -> pa.Table:
    outputs = [*((o.name, o.expression.type) for o in query.select)]
    outputs += [("window_start", TIMESTAMP), ("window_end", TIMESTAMP)]
    columns, fields = [], []
    for (name, kind), column in zip(outputs, found.columns, strict=False):
        metadata = {ZERO_KEY: repr(zeros[name]).encode()} if name in zeros else None
        fields.append(pa.field(name, result_type(kind), metadata=metadata))
        columns.append(_printed(plain(column), kind).cast(result_type(kind)))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _printed(array: pa.Array, kind: Type) -> pa.Array:
    return printed(array.cast(pa.string())) if kind.kind in (Kind.INET, Kind.PREFIX) else array


def zeros_of(query: Query, prepared: Prepared, exact: Flags) -> dict[str, float]:
    """How much rounding may leave of a variance that is truly zero: 1e-18 of the square of the greatest value."""
    allowed: dict[str, float] = {}
    for output in query.select:
        expression = output.expression
        if isinstance(expression, Aggregate) and expression.function in SPREADS and expression.argument is not None:
            column = prepared.table.column(prepared.names[expression.argument]).filter(pa.array(exact))
            deviation = FLOAT_TOLERANCE * greatest(column.cast(pa.float64(), safe=False))
            allowed[output.name] = deviation if expression.function.startswith("stddev") else deviation * deviation
    return allowed


def greatest(column: pa.ChunkedArray) -> float:
    """The greatest finite magnitude."""
    finite = pc.filter(column, pc.is_finite(column))
    return float(pc.max(pc.abs(finite)).as_py() or 0.0)
