"""The rows and accounts that an app must produce, computed without any code of the engine.

    raw table ──► columns (typed values, fits?) ──► timeline (batches, watermarks)
                          │                               │
                          └──► per query: verdict of every tuple: malformed, filtered, late or exact
                                          exact tuples ──► groups (DuckDB) ──► HAVING, select list (DuckDB)

DuckDB filters, groups and computes select lists; addresses, window numbers, watermarks and sums of doubles are
plain Python.  Sums of doubles are correctly rounded (`math.fsum`), so an engine may differ by 1e-9 relative.

Choices where the design is silent: a tuple whose group HAVING drops is exact; a time ahead of MAX AHEAD does not
advance the watermark; an IPv4 address under a prefix longer than 32 bits keeps its 32 bits; integer arithmetic
that leaves BIGINT is NULL; LIKE has no escape character; integers and doubles compare as doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import RunError
from penstock.logical.expressions import Aggregate, Bucket, Column, Expression, Prefix, walk
from penstock.logical.query import Query, QuerySet, Stream
from penstock.logical.types import TIMESTAMP, Kind
from penstock.testing.columns import Flags, prefixes, printed, read_column, result_type
from penstock.testing.duck import SQL_TYPES, Translator, Value
from penstock.testing.timeline import Timeline, follow_time

FLOAT_TOLERANCE = 1e-9  # relative, of sums and averages of doubles


class Verdict(IntEnum):
    """What became of a tuple; smaller wins in the stream's account. (Nothing is triaged without overload.)"""

    EXACT = 0
    TRIAGED = 1
    LATE = 2
    FILTERED = 3
    MALFORMED = 4


Verdicts = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Account:
    """input = exact + triaged + late + filtered + malformed."""

    input: int
    exact: int
    triaged: int
    late: int
    filtered: int
    malformed: int

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True)
class Expected:
    """What a run must show: rows and account by query name, the stream's account, WM(N) by batch."""

    rows: Mapping[str, pa.Table]
    accounts: Mapping[str, Account]
    stream: Account
    watermarks: tuple[int | None, ...]


@dataclass(frozen=True)
class _Prepared:
    """The stream as DuckDB sees it: one column per attribute, named c0, c1, … in `names`."""

    table: pa.Table
    names: Mapping[Expression, str]
    fits: Mapping[str, Flags]
    timeline: Timeline


def expect(queries: QuerySet, data: pa.Table, batches: Sequence[int], stream: str | None = None) -> Expected:
    """Compute what the queries on one stream (the only one, unless named) must give.

    `data` is the stream as it stands in its files; `batches` are the row counts of the logged micro-batches.
    Raises RunError where an integer sum does not fit BIGINT: the run must end with a message.
    """
    name = stream if stream is not None else queries.streams[0].name
    asked = [query for query in queries.queries if query.stream == name]
    prepared = _prepare(queries.stream(name), asked, data, batches)
    verdicts = {query.name: _judge(query, prepared) for query in asked}
    rows = {query.name: _rows(query, prepared, verdicts[query.name]) for query in asked}
    worst = np.full(data.num_rows, Verdict.MALFORMED, np.int8)
    return Expected(
        rows,
        {query: _account(verdict) for query, verdict in verdicts.items()},
        _account(np.minimum.reduce([worst, *verdicts.values()])),
        prepared.timeline.watermarks,
    )


def _prepare(stream: Stream, queries: Iterable[Query], data: pa.Table, batches: Sequence[int]) -> _Prepared:
    types = {field.name: field.type for field in stream.fields}
    time = read_column(data.column(stream.time), TIMESTAMP)
    used = sorted({name for query in queries for name in query.columns})
    values = {name: read_column(data.column(name), types[name]) for name in used}
    arrays: dict[Expression, pa.Array] = {Column(name, types[name]): values[name].array for name in used}
    for prefix in sorted({p for query in queries for p in _prefixes(query)}, key=lambda p: (p.column.name, p.length)):
        arrays[prefix] = prefixes(values[prefix.column.name].array, prefix.length)
    names = {attribute: f"c{i}" for i, attribute in enumerate(arrays)}
    # The row number is there so that a stream of which only the time is read still has a table.
    columns = {"row": pa.array(np.arange(data.num_rows, dtype=np.int64))}
    columns |= {names[attribute]: array for attribute, array in arrays.items()}
    fits = {name: values[name].fits for name in used}
    return _Prepared(pa.table(columns), names, fits, follow_time(stream, time, batches))


def _prefixes(query: Query) -> Iterable[Prefix]:
    expressions: list[Expression] = [key.attribute for key in query.keys]
    if query.where is not None:
        expressions.append(query.where)
    return (e for expression in expressions for e in walk(expression) if isinstance(e, Prefix))


def _judge(query: Query, prepared: _Prepared) -> Verdicts:
    """Malformed is judged first, then filtered, then late."""
    good = prepared.timeline.good
    for name in query.columns:
        good = good & prepared.fits[name]
    verdicts = np.full(len(good), Verdict.EXACT, np.int8)
    verdicts[prepared.timeline.late(query.window.size)] = Verdict.LATE
    verdicts[~_passes(query.where, prepared)] = Verdict.FILTERED
    verdicts[~good] = Verdict.MALFORMED
    return verdicts


def _passes(where: Expression | None, prepared: _Prepared) -> Flags:
    if where is None:
        return np.ones(prepared.table.num_rows, np.bool_)
    translator = Translator(prepared.names)
    text = f"SELECT coalesce({translator.sql(where)}, false) AS pass FROM input ORDER BY row"
    passed = _run(text, translator.parameters, prepared.table).column("pass")
    return np.asarray(passed.to_numpy(), np.bool_)


def _account(verdicts: Verdicts) -> Account:
    counts = np.bincount(verdicts, minlength=len(Verdict))
    return Account(len(verdicts), *(int(counts[verdict]) for verdict in Verdict))


def _rows(query: Query, prepared: _Prepared, verdicts: Verdicts) -> pa.Table:
    names: dict[Expression, str] = {Bucket(): "window_number"}
    names |= {key.attribute: f"k{i}" for i, key in enumerate(query.keys)}
    names |= {aggregate: f"a{i}" for i, aggregate in enumerate(query.aggregates)}
    numbers = pa.array(prepared.timeline.window_numbers(query.window.size))
    windowed = prepared.table.append_column("window_number", numbers)
    exact = windowed.filter(pa.array(verdicts == Verdict.EXACT))
    return _finish(query, _groups(query, exact, prepared.names, names), names)


def _groups(
    query: Query, exact: pa.Table, inputs: Mapping[Expression, str], names: Mapping[Expression, str]
) -> pa.Table:
    keys = [f"{inputs[key.attribute]} AS {names[key.attribute]}" for key in query.keys]
    aggregates = [f"{_aggregate_sql(a, inputs)} AS {names[a]}" for a in query.aggregates]
    by = ["window_number", *(inputs[key.attribute] for key in query.keys)]
    groups = _run(
        f"SELECT {', '.join(['window_number', *keys, *aggregates])} FROM input GROUP BY {', '.join(by)}", {}, exact
    )
    for aggregate in query.aggregates:
        if _summed_in_python(aggregate):
            at = groups.schema.get_field_index(names[aggregate])
            groups = groups.set_column(at, names[aggregate], _sums(aggregate, groups.column(at)))
    return groups


def _summed_in_python(aggregate: Aggregate) -> bool:
    argument = aggregate.argument
    return aggregate.function in ("sum", "avg") and argument is not None and argument.type.kind is Kind.DOUBLE


def _aggregate_sql(aggregate: Aggregate, inputs: Mapping[Expression, str]) -> str:
    if aggregate.argument is None:
        return "count(*)"
    column = inputs[aggregate.argument]
    if _summed_in_python(aggregate):
        return f"list({column}) FILTER ({column} IS NOT NULL)"
    # DuckDB sums BIGINT as HUGEINT; the cast raises where the end does not fit.
    return f"CAST(sum({column}) AS BIGINT)" if aggregate.function == "sum" else f"{aggregate.function}({column})"


def _sums(aggregate: Aggregate, lists: pa.ChunkedArray) -> pa.Array:
    divide = aggregate.function == "avg"
    return pa.array([_sum(values, divide) for values in lists.to_pylist()], pa.float64())


def _sum(values: list[float] | None, divide: bool) -> float | None:
    if not values:
        return None
    try:
        total = math.fsum(values)
    except (ValueError, OverflowError):  # infinities of both signs, or beyond the largest double
        total = sum(values)
    return total / len(values) if divide else total


def _finish(query: Query, groups: pa.Table, names: Mapping[Expression, str]) -> pa.Table:
    translator = Translator(names)
    select = [
        f"CAST({translator.sql(output.expression)} AS {SQL_TYPES[output.expression.type.kind]}) AS o{i}"
        for i, output in enumerate(query.select)
    ]
    size = query.window.size
    select += [f"window_number * {size} AS window_start", f"(window_number + 1) * {size} AS window_end"]
    having = "true" if query.having is None else translator.sql(query.having)
    found = _run(f"SELECT {', '.join(select)} FROM input WHERE {having}", translator.parameters, groups)
    types = [*(output.expression.type for output in query.select), TIMESTAMP, TIMESTAMP]
    columns = [
        _printed(column, kind.kind).cast(result_type(kind)) for column, kind in zip(found.columns, types, strict=True)
    ]
    return pa.table(columns, names=[*(output.name for output in query.select), "window_start", "window_end"])


def _printed(column: pa.ChunkedArray, kind: Kind) -> pa.Array:
    array = column.combine_chunks() if column.num_chunks else pa.array([], column.type)
    return printed(array.cast(pa.string())) if kind in (Kind.INET, Kind.PREFIX) else array


def _run(text: str, parameters: Mapping[str, Value], table: pa.Table) -> pa.Table:
    """Run one statement on `table`, which it calls input; a database per statement keeps the oracle stateless."""
    with duckdb.connect(config={"threads": 1}) as database:
        database.register("input", table)
        try:
            result: Any = database.sql(text, params=dict(parameters) or None).to_arrow_table()
        except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
            raise RunError(f"a number does not fit BIGINT: {str(error).splitlines()[0]}") from error
        return result
