"""Whether a source can give a stream's declared columns; asked before anything runs."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import SourceError
from penstock.logical.query import Field
from penstock.logical.types import Kind
from penstock.sources.base import ADDRESS


def compatible(field: Field, arrow: pa.DataType) -> bool:
    """Whether a source's column can be read as the declared type (value by value, if need be)."""
    kind = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    integer, text = pa.types.is_integer(kind), pa.types.is_string(kind) or pa.types.is_large_string(kind)
    match field.type.kind:
        case Kind.BOOLEAN:
            return bool(pa.types.is_boolean(kind))
        case Kind.INTEGER:
            return bool(integer)
        case Kind.DOUBLE:
            return bool(integer or (pa.types.is_floating(kind) and kind.bit_width >= 32))
        case Kind.TIMESTAMP:
            return bool(pa.types.is_timestamp(kind))
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
            raise SourceError(
                f"column '{field.name}' of {source} is {arrow}, which cannot be read as {field.type}",
                "change the declared type, or leave the schema out",
            )
