"""Whether a stream has what queries ask of it: columns as declared, and an order for windows of rows.

Asked before anything runs.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import QueryError, SourceError
from penstock.logical.query import Field
from penstock.logical.types import INET, NOT_READ, Kind
from penstock.logical.window import LAST, ROWS, Window
from penstock.sources.base import ADDRESS, Abilities, logical_type, told_type, whole_decimal


def compatible(field: Field, arrow: pa.DataType) -> bool:
    """Whether a source's column can be read as the declared type (value by value, if need be)."""
    kind = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    integer, text = pa.types.is_integer(kind), pa.types.is_string(kind) or pa.types.is_large_string(kind)
    match field.type.kind:
        case Kind.BOOLEAN:
            return bool(pa.types.is_boolean(kind))
        case Kind.INTEGER:
            return bool(integer or whole_decimal(kind))
        case Kind.DOUBLE:
            return bool(integer or pa.types.is_decimal(kind) or (pa.types.is_floating(kind) and kind.bit_width >= 32))
        case Kind.TIMESTAMP:
            return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
        case Kind.STRING:
            return bool(text)
        case Kind.INET:
            return bool(text or integer or kind == ADDRESS)
    return False


def check_fields(fields: tuple[Field, ...], schema: pa.Schema, source: str) -> None:
    """Refuse declared columns that the source does not have or cannot give as declared."""
    for field in fields:
        if field.name not in schema.names:
            have = ", ".join(schema.names)
            raise SourceError(f"column '{field.name}' is not in {source}", f"its columns are {have}")
        arrow = schema.field(field.name).type
        if not compatible(field, arrow):
            kind = INET if arrow == ADDRESS else told_type(arrow)
            raise SourceError(
                f"column '{field.name}' of {source} is {kind}, which cannot be read as {field.type}",
                "change the declared type, or leave the schema out" if _read(schema, field) else NOT_READ,
            )


def _read(schema: pa.Schema, field: Field) -> bool:
    """Whether the source's column can be read as any type."""
    return schema.field(field.name).type == ADDRESS or logical_type(schema.field(field.name)) is not None


def check_window(query: str, window: Window, abilities: Abilities) -> None:
    """Refuse a window of rows where rows have no order."""
    if window.axis in (ROWS, LAST) and not abilities.rows_in_order:
        raise QueryError(f"query '{query}' has a window of rows, but rows of a DataFrame have no order")
