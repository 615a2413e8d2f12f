"""A stream as the oracle's database sees it: one column per attribute that some query uses.

raw table ──► columns (typed values, fits?) ──► prefixes ──► computed attributes (DuckDB, per record)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.logical.expressions import Column, Computed, Expression, Prefix, walk
from penstock.logical.query import Query, Stream
from penstock.logical.types import Kind
from penstock.testing.oracle.columns import Flags, prefixes, read_column
from penstock.testing.oracle.database import NamedTable, plain, run
from penstock.testing.oracle.duck import SQL_TYPES
from penstock.testing.oracle.timeline import Timeline


@dataclass(frozen=True)
class Prepared:
    """One column per attribute, called c0, c1, … in `names`, and the record's number in `row`."""

    table: pa.Table
    names: Mapping[Expression, str]
    fits: Mapping[str, Flags]
    timeline: Timeline

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def passes(self, where: Expression | None) -> Flags:
        """Where the predicate is true."""
        if where is None:
            return np.ones(self.rows, np.bool_)
        translator = NamedTable(self.names)
        text = f"SELECT coalesce({translator.sql(where)}, false) AS pass FROM input ORDER BY row"
        passed = run(text, translator.parameters, input=self.table).column("pass")
        return np.asarray(passed.to_numpy(), np.bool_)


def prepare(stream: Stream, queries: Iterable[Query], data: pa.Table, timeline: Timeline) -> Prepared:
    """Everything that these queries read of a stream."""
    types = {field.name: field.type for field in stream.fields}
    used = sorted({name for query in queries for name in query.columns})
    parts = sorted({part for query in queries for part in _parts(query)}, key=repr)
    values = {name: read_column(data.column(name), types[name]) for name in used}
    arrays: dict[Expression, pa.Array] = {Column(name, types[name]): values[name].array for name in used}
    arrays |= {p: prefixes(values[p.column.name].array, p.length) for p in parts if isinstance(p, Prefix)}
    # The row number is there so that a stream of which only the time is read still has a table.
    table = pa.table({"row": pa.array(np.arange(data.num_rows, dtype=np.int64))})
    names: dict[Expression, str] = {}
    for attribute, array in arrays.items():
        names[attribute] = f"c{len(names)}"
        table = table.append_column(names[attribute], array)
    for part in parts:
        if isinstance(part, Computed):
            array = _evaluate(part, table, names)
            names[part] = f"c{len(names)}"
            table = table.append_column(names[part], array)
    return Prepared(table, names, {name: values[name].fits for name in used}, timeline)


def _parts(query: Query) -> Iterator[Prefix | Computed]:
    """The prefixes and computed attributes that a query reads."""
    expressions: list[Expression] = [key.attribute for key in query.keys]
    expressions += [*query.aggregates] if query.where is None else [*query.aggregates, query.where]
    for expression in expressions:
        yield from (part for part in walk(expression) if isinstance(part, Prefix | Computed))


def _evaluate(computed: Computed, table: pa.Table, names: Mapping[Expression, str]) -> pa.Array:
    """The value of a computed attribute for every record; what stands inside it may be computed, too."""
    translator = NamedTable(names)
    # By its expression: the attribute itself has no column yet.
    value = f"CAST({translator.sql(computed.expression)} AS {SQL_TYPES[computed.type.kind]})"
    array = plain(run(f"SELECT {value} AS value FROM input ORDER BY row", translator.parameters, input=table)[0])
    # Adding zero turns -0.0 into 0.0 and leaves everything else.
    return pc.add(array, 0.0) if computed.type.kind is Kind.DOUBLE else array
