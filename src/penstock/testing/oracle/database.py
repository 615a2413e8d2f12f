"""DuckDB as the oracle uses it: one statement at a time on Arrow tables, and a translator that knows names first."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from penstock.errors import RunError
from penstock.logical.expressions import Expression
from penstock.testing.oracle.duck import Translator, Value


class NamedTable(Translator):
    """Expressions that stand in the table already are called by their column, whatever they are made of."""

    def sql(self, expression: Expression) -> str:
        return self.names[expression] if expression in self.names else super().sql(expression)


def run(text: str, parameters: Mapping[str, Value], **tables: pa.Table) -> pa.Table:
    """Run one statement on tables by name."""
    database = _database(os.getpid(), threading.get_ident())
    for name, table in tables.items():
        database.register(name, table)
    try:
        result: Any = database.sql(text, params=dict(parameters) or None).to_arrow_table()
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        raise RunError(f"a number does not fit BIGINT: {str(error).splitlines()[0]}") from error
    finally:
        for name in tables:
            database.unregister(name)
    return result


@lru_cache(maxsize=1)
def _database(process: int, thread: int) -> Any:
    """Opening one takes ten times as long as a small statement; nothing stays in it."""
    return duckdb.connect(config={"threads": 1})


def plain(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)
