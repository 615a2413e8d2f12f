"""Scalar functions on columns; `logical.values.functions` says which there are and what they take.

Arguments that must be constants are read from the expression, the others come as operands.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.logical.expressions import Call, Literal
from penstock.logical.types import Kind
from penstock.runtime.expressions.calendar import PARTS, part_of, truncate
from penstock.runtime.expressions.operands import (
    Array,
    Operand,
    both,
    choose,
    flags,
    mapped,
    nothing,
    ordering,
    per_text,
    plain,
    present,
)
from penstock.runtime.expressions.sketches import order_bucket, register_mark, register_row

LEAST = -(1 << 63)
Function = Callable[[Call, list[Operand]], Operand]


def call(expression: Call, operands: list[Operand], rows: int) -> Operand:
    if expression.function in _CHOICES:
        return _choice(expression, operands, rows)
    # A constant that is NULL makes everything NULL, and its text is not asked for below.
    if any(isinstance(argument, Literal) and argument.value is None for argument in expression.arguments):
        return nothing(expression.type, rows)
    if expression.function in PARTS:
        return Operand(part_of(expression.function, operands[0].values), operands[0].valid)
    with np.errstate(all="ignore"):
        return _FUNCTIONS[expression.function](expression, operands)


# -- one of several values

_CHOICES = frozenset({"coalesce", "least", "greatest", "nullif"})


def _choice(expression: Call, operands: list[Operand], rows: int) -> Operand:
    result, *others = operands
    for other in others:
        if expression.function == "nullif":
            _, equal = ordering(result.values, other.values)
            differ = ~(equal & present(result, rows) & present(other, rows))
            return Operand(result.values, both(result.valid, differ))
        keep = present(result, rows)
        if expression.function != "coalesce":
            below, equal = ordering(result.values, other.values)
            better = below | equal if expression.function == "least" else ~below
            keep = keep & (better | ~present(other, rows))
        result = choose(keep, result, other, expression.type)
    if expression.type.kind is Kind.DOUBLE:
        return Operand(np.asarray(result.values, np.float64), result.valid)
    return result


# -- numbers


def _abs(expression: Call, operands: list[Operand]) -> Operand:
    values, valid = operands[0].values, operands[0].valid
    if values.dtype.kind == "f":
        return Operand(np.abs(values), valid)
    return Operand(np.abs(values), both(valid, values != LEAST))


def _sign(expression: Call, operands: list[Operand]) -> Operand:
    values = operands[0].values
    return Operand((values > 0).astype(np.int64) - (values < 0), operands[0].valid)


def _round(expression: Call, operands: list[Operand]) -> Operand:
    digits = int(_constant(expression, 1)) if len(expression.arguments) > 1 else 0
    values, valid = operands[0].values, operands[0].valid
    if values.dtype.kind != "f":
        return Operand(values, valid) if digits >= 0 else _round_whole(values, valid, 10**-digits)
    unit = 10.0 ** abs(digits)
    result = _nearest(values * unit) / unit if digits > 0 else _nearest(values / unit) * unit
    return Operand(np.where(np.isfinite(result), result, values), valid)


def _nearest(values: Array) -> Array:
    """The nearest whole number, halves away from zero."""
    whole = np.trunc(values)
    nearest: Array = whole + np.where(np.abs(values - whole) >= 0.5, np.copysign(1.0, values), 0.0)
    return nearest


def _round_whole(values: Array, valid: Array | None, unit: int) -> Operand:
    """To multiples of `unit`, halves away from zero; in unsigned numbers, as the least number has no opposite."""
    size = np.where(values < 0, -(values + 1), values).astype(np.uint64) + (values < 0).astype(np.uint64)
    size = (size + np.uint64(unit // 2)) // np.uint64(unit) * np.uint64(unit)
    fits = size <= np.where(values < 0, np.uint64(1 << 63), np.uint64((1 << 63) - 1))
    return Operand(np.where(values < 0, -size.view(np.int64), size.view(np.int64)), both(valid, fits))


def _real(function: Callable[[Array], Array], exists: Callable[[Array], Array] | None = None) -> Function:
    """A function of a DOUBLE that is NULL where it does not exist."""

    def evaluated(expression: Call, operands: list[Operand]) -> Operand:
        values = operands[0].values.astype(np.float64)
        return Operand(function(values), both(operands[0].valid, None if exists is None else exists(values)))

    return evaluated


def _power(expression: Call, operands: list[Operand]) -> Operand:
    base, exponent = (operand.values.astype(np.float64) for operand in operands)
    result = np.power(base, exponent)
    exists = ~np.isnan(result) | np.isnan(base) | np.isnan(exponent)
    valid = both(operands[0].valid, operands[1].valid)
    return Operand(result, both(valid, exists & ~((base == 0) & (exponent < 0))))


# -- texts


def _mapped(function: Callable[[pa.Array], pa.Array]) -> Function:
    return lambda expression, operands: mapped(operands[0], function)


def _length(expression: Call, operands: list[Operand]) -> Operand:
    def lengths(strings: pa.Array) -> tuple[Array, None]:
        return pc.fill_null(pc.utf8_length(strings), 0).to_numpy(zero_copy_only=False).astype(np.int64), None

    return per_text(operands[0], lengths)


def _substr(expression: Call, operands: list[Operand]) -> Operand:
    start = int(_constant(expression, 1))
    first = start - 1 if start > 0 else start
    stop: int | None = None
    if len(expression.arguments) == 3:
        stop = first + int(_constant(expression, 2))
        # Counted from the end, a stop that is not before it is the end itself.
        stop = None if first < 0 <= stop else stop
    return mapped(operands[0], lambda strings: pc.utf8_slice_codeunits(strings, first, stop))


def _concat(expression: Call, operands: list[Operand]) -> Operand:
    valid = None
    for operand in operands:
        valid = both(valid, operand.valid)
    joined = pc.binary_join_element_wise(*(plain(operand.values) for operand in operands), "")
    return Operand(pc.fill_null(joined, ""), valid)


def _trim(trim: Callable[..., pa.Array]) -> Function:
    def evaluated(expression: Call, operands: list[Operand]) -> Operand:
        characters = _constant(expression, 1) if len(expression.arguments) > 1 else " "
        return mapped(operands[0], lambda strings: trim(strings, characters=characters)) if characters else operands[0]

    return evaluated


def _replace(expression: Call, operands: list[Operand]) -> Operand:
    old, new = _constant(expression, 1), _constant(expression, 2)
    if not old:  # Arrow would put `new` between all characters, for ever
        return operands[0]
    return mapped(operands[0], lambda strings: pc.replace_substring(strings, old, new))


def _starts_with(expression: Call, operands: list[Operand]) -> Operand:
    prefix = _constant(expression, 1)
    return per_text(operands[0], lambda strings: (flags(pc.starts_with(strings, prefix)), None))


def _date_trunc(expression: Call, operands: list[Operand]) -> Operand:
    result = truncate(str(_constant(expression, 0)), operands[1].values)
    # Near the end of 64 bits the beginning of a unit may lie outside.
    return Operand(result, both(operands[1].valid, result <= operands[1].values))


def _constant(expression: Call, at: int) -> str:
    argument = expression.arguments[at]
    assert isinstance(argument, Literal)
    return argument.value  # type: ignore[return-value]


_FUNCTIONS: dict[str, Function] = {
    "order_bucket": order_bucket,
    "register_row": register_row,
    "register_mark": register_mark,
    "abs": _abs,
    "sign": _sign,
    "floor": _real(np.floor),
    "ceil": _real(np.ceil),
    "round": _round,
    "sqrt": _real(np.sqrt, lambda x: ~(x < 0)),
    "ln": _real(np.log, lambda x: ~(x <= 0)),
    "log10": _real(np.log10, lambda x: ~(x <= 0)),
    "exp": _real(np.exp),
    "power": _power,
    "lower": _mapped(pc.utf8_lower),
    "upper": _mapped(pc.utf8_upper),
    "length": _length,
    "substr": _substr,
    "concat": _concat,
    "trim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    "replace": _replace,
    "starts_with": _starts_with,
    "date_trunc": _date_trunc,
}
