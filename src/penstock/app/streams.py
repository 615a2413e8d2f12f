"""What `App.stream` is given: objects that are streams, and columns with declared types."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from penstock.errors import QueryError, SourceError
from penstock.logical.query import Field
from penstock.logical.types import TYPE_NAMES, Type

if TYPE_CHECKING:
    from penstock.sources.arrow.table import TableSource


def is_frame(source: Any) -> bool:
    """Whether it is a DataFrame of Spark's, which nobody has who has not loaded Spark."""
    spark = sys.modules.get("pyspark.sql")
    return spark is not None and isinstance(source, spark.DataFrame)


def table_of(name: str, source: Any) -> TableSource:
    """A table in memory, of whichever library."""
    from penstock.sources.arrow.table import taken

    table = taken(name, source)
    if table is None:
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        lazy = "collect() it first; " if hasattr(source, "collect") else ""
        raise SourceError(
            f"stream '{name}' cannot be read from a {kind.removeprefix('builtins.')}",
            f"{lazy}give an address like 'csv:FILE', a Spark, pandas or polars DataFrame, or an Arrow table",
        )
    return table


def typed_fields(types: Mapping[str, str]) -> tuple[Field, ...]:
    """Columns by name and SQL type."""
    return tuple(Field(name, _type(name, kind)) for name, kind in types.items())


def with_types(known: tuple[Field, ...], types: Mapping[str, str], where: str) -> tuple[Field, ...]:
    """The columns that are known, some of them with another type."""
    names = [field.name for field in known]
    for name in types:
        if name not in names:
            near = get_close_matches(str(name), names, n=1, cutoff=0.6)
            meant = f"did you mean '{near[0]}'? " if near else ""
            raise QueryError(
                f"types= names column '{name}', which {where} does not have",
                f"{meant}its columns are {', '.join(names)}; fields= declares all columns",
            )
    return tuple(Field(f.name, _type(f.name, types[f.name])) if f.name in types else f for f in known)


def _type(name: str, kind: Any) -> Type:
    known = TYPE_NAMES.get(kind.upper()) if isinstance(kind, str) else None
    if known is None:
        raise QueryError(f"unknown type '{kind}' of column '{name}'", f"types are {', '.join(TYPE_NAMES)}")
    return known
