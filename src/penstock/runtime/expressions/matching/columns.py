"""Columns of a table, in the form in which `sources.tables` stores them, as operands of expressions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels import inet
from penstock.logical.expressions import Column, Expression
from penstock.logical.types import Kind, Type
from penstock.runtime.expressions.evaluate import Scope
from penstock.runtime.expressions.operands import Addresses, Array, Operand, nothing, plain
from penstock.sources.texts import text_bytes


def table_operand(data: pa.Table, name: str, kind: Type) -> Operand:
    """A column of a table; texts are dictionary-encoded."""
    array = _whole(data[name])
    valid: Array | None = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if array.null_count == len(array):
        return nothing(kind, len(array))
    match kind.kind:
        case Kind.STRING:
            return Operand(_encoded(array), valid)
        case Kind.INET | Kind.PREFIX:
            return Operand(Addresses(*inet.parse(*text_bytes(pc.fill_null(plain(array), "0.0.0.0")))), valid)
        case Kind.BOOLEAN:
            return Operand(pc.fill_null(array, False).to_numpy(zero_copy_only=False), valid)
        case Kind.DOUBLE:
            return Operand(pc.fill_null(array, 0.0).to_numpy(), valid)
    return Operand(pc.fill_null(array.cast(pa.int64()), 0).to_numpy(), valid)


def table_scope(data: pa.Table) -> Scope:
    """What expressions over the columns of a table mean; each column is made once."""
    made: dict[Expression, Operand] = {}

    def lookup(column: Expression) -> Operand:
        assert isinstance(column, Column)
        if column not in made:
            made[column] = table_operand(data, column.name, column.type)
        return made[column]

    return Scope(lookup, data.num_rows)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _encoded(array: pa.Array) -> pa.Array:
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    codes = pc.fill_null(encoded.indices, 0).to_numpy().astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes), plain(encoded.dictionary), safe=False)
