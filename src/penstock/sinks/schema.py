"""The columns of a query's result (Arrow types by the engine's types), and its sink.

Imports no kernels, because the driver needs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.logical.query import Query
from penstock.logical.types import Kind, Type
from penstock.sinks.base import Sink
from penstock.sinks.registry import open_sink
from penstock.state.files import local_path

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
    """Columns of a query's result: the select list, then the window if there is one."""
    fields = [pa.field(output.name, arrow_type(output.expression.type)) for output in query.select]
    times = () if query.window.whole else (pa.field("window_start", TIME), pa.field("window_end", TIME))
    return pa.schema([*fields, *times])


def open_query_sink(query: Query, function: Any, output: str, checkpoint: Path) -> Sink:
    """Where the results go: a function of the user's, what INTO says, or a folder below `output`."""
    where = query.sink if function is None else function
    return open_sink(query.name, where, local_path(output, "output"), result_schema(query), checkpoint)
