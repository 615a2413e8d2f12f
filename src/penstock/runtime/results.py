"""The columns of a query's result: Arrow types by the engine's types. Imports no kernels: the driver needs it."""

from __future__ import annotations

import pyarrow as pa

from penstock.logical.query import Query
from penstock.logical.types import Kind, Type

TIME = pa.timestamp("us", tz="UTC")
INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def arrow_type(kind: Type) -> pa.DataType:
    """The Arrow (and Parquet) type of a result column; addresses and prefixes are text."""
    match kind.kind:
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.INTEGER:
            return INTEGERS[kind.bits]
        case Kind.DOUBLE:
            return pa.float64()
        case Kind.TIMESTAMP:
            return TIME
    return pa.string()


def result_schema(query: Query) -> pa.Schema:
    """Columns of a query's result: the select list, then the window."""
    fields = [pa.field(output.name, arrow_type(output.expression.type)) for output in query.select]
    return pa.schema([*fields, pa.field("window_start", TIME), pa.field("window_end", TIME)])
