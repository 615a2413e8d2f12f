"""What approximate aggregates keep of a value in its place: see `buckets` and `registers` in `aggregates.details`.

None of these can be called from SQL.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.aggregates.details.buckets import MANTISSA
from penstock.aggregates.details.registers import LANE_BITS
from penstock.kernels.dictionary import hash_strings
from penstock.kernels.tables.order import hash_values
from penstock.kernels.tables.registers import leading_marks
from penstock.logical.expressions import Call, Literal
from penstock.runtime.expressions.operands import Addresses, Operand, order_numbers, per_text
from penstock.sources.texts import text_bytes

Array = np.ndarray


def order_bucket(expression: Call, operands: list[Operand]) -> Operand:
    """The sign, exponent and first mantissa bits of a number: a bucket of doubles that are next to each other."""
    numbers = order_numbers(operands[0].values)
    return Operand(numbers >> (MANTISSA - _constant(expression)), operands[0].valid)


def register_row(expression: Call, operands: list[Operand]) -> Operand:
    """The row of registers that a value falls to."""
    hashed = _hashed(operands[0])
    shift = np.uint64(64 - _constant(expression) + LANE_BITS)
    return Operand((hashed.values >> shift).astype(np.int64), hashed.valid)


def register_mark(expression: Call, operands: list[Operand]) -> Operand:
    """The register of that row, and the mark that it gets: the place of the first one among the other bits."""
    hashed = _hashed(operands[0])
    marks = np.empty(len(hashed.values), np.int64)
    leading_marks(hashed.values, _constant(expression), marks)
    return Operand(marks, hashed.valid)


def _constant(expression: Call) -> int:
    constant = expression.arguments[1]
    assert isinstance(constant, Literal)
    assert isinstance(constant.value, int)
    return constant.value


def _hashed(operand: Operand) -> Operand:
    """64 bits of every value: the same in every task, whatever codes strings have there."""
    values = operand.values
    if isinstance(values, pa.Array):
        found = per_text(operand, lambda strings: (hash_strings(*text_bytes(strings)).view(np.int64), None))
        return Operand(np.ascontiguousarray(found.values).view(np.uint64), found.valid)
    words: tuple[Array, ...]
    if isinstance(values, Addresses):
        words = (values.version.astype(np.int64), values.high.view(np.int64), values.low.view(np.int64))
    else:
        words = (order_numbers(values) if values.dtype.kind == "f" else values.astype(np.int64),)
    hashes = np.zeros(len(words[0]), np.uint64)
    for word in words:
        hash_values(np.ascontiguousarray(word), hashes)
    return Operand(hashes, operand.valid)
