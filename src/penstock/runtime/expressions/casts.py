"""CAST on columns; what does not fit its new type is NULL.

| from, to | rule |
| --- | --- |
| DOUBLE to integers | towards zero; NaN and infinities are NULL |
| text to integers | a sign and digits, with spaces around |
| text to DOUBLE | a decimal number, perhaps with an exponent; beyond DOUBLE is NULL |
| text to BOOLEAN | true t yes y 1, false f no n 0, in any case |
| text to TIMESTAMP | 2024-05-06, perhaps with T or a space and 07:08, 07:08:09 or 07:08:09.123456, and Z; all UTC |
| TIMESTAMP to text | 2024-05-06 07:08:09.5, without zeros at the end; only the years 1 to 9999 |
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.logical.types import Kind, Type
from penstock.runtime.expressions.calendar import SECOND, moment
from penstock.runtime.expressions.operands import Array, Operand, both, flags, per_text

_WHOLE = r"^ *([+-]?)0*([0-9]{1,19}) *$"
_REAL = r"^ *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *$"
_TIME = (
    r"^ *(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[ T](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?)?)?Z? *$"
)
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_DAY = 86_400 * SECOND
_FIRST, _BEYOND = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND  # the years 1 and 10000


def cast(operand: Operand, source: Type, target: Type) -> Operand:
    if source.kind is target.kind and source.kind is not Kind.INTEGER:  # a NULL that was given a type
        return operand
    if source.kind is Kind.STRING:
        reader = {Kind.DOUBLE: _reals, Kind.BOOLEAN: _truths, Kind.TIMESTAMP: _times}.get(target.kind)
        if reader is not None:
            return per_text(operand, reader)
        return _narrow(per_text(operand, _wholes), target.bits)
    if target.kind is Kind.STRING:
        return _printed(operand, source)
    values = operand.values
    match target.kind:
        case Kind.DOUBLE:
            return Operand(values.astype(np.float64), operand.valid)
        case Kind.BOOLEAN:
            return Operand(values != 0, operand.valid)
    if source.kind is Kind.DOUBLE:
        return _narrow(_towards_zero(operand), target.bits)
    return _narrow(Operand(values.astype(np.int64), operand.valid), target.bits)


# -- numbers


def _towards_zero(operand: Operand) -> Operand:
    # Comparisons with NaN are false, so it does not fit; 2 to the 63 is the first double beyond 64 bits.
    fits = (operand.values >= -(2.0**63)) & (operand.values < 2.0**63)
    return Operand(np.where(fits, operand.values, 0.0).astype(np.int64), both(operand.valid, fits))


def _narrow(operand: Operand, bits: int) -> Operand:
    if bits == 64:
        return operand
    fits = (operand.values >= -(1 << (bits - 1))) & (operand.values < 1 << (bits - 1))
    return Operand(np.where(fits, operand.values, 0), both(operand.valid, fits))


# -- from text


def _wholes(strings: pa.Array) -> tuple[Array, Array]:
    fits = flags(pc.match_substring_regex(strings, _WHOLE))
    digits = pc.replace_substring_regex(_only(strings, fits), _WHOLE, r"\1\2")
    # Nineteen digits may leave 64 bits; a decimal holds them all.
    wide = digits.cast(pa.decimal128(38, 0))
    low, high = (pa.scalar(limit, pa.int64()).cast(pa.decimal128(38, 0)) for limit in (-(1 << 63), (1 << 63) - 1))
    inside = flags(pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high)))
    numbers = pc.if_else(pa.array(inside), wide, pa.scalar(0, pa.int64()).cast(pa.decimal128(38, 0)))
    return numbers.cast(pa.int64()).to_numpy(zero_copy_only=False), fits & inside


def _reals(strings: pa.Array) -> tuple[Array, Array]:
    fits = flags(pc.match_substring_regex(strings, _REAL))
    digits = pc.utf8_ltrim(pc.utf8_trim(_only(strings, fits), " "), "+")
    numbers = digits.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers, fits & np.isfinite(numbers)


def _truths(strings: pa.Array) -> tuple[Array, Array]:
    words = pc.utf8_lower(pc.utf8_trim(strings, " "))
    true, false = (flags(pc.is_in(words, pa.array(listed))) for listed in (_TRUE, _FALSE))
    return true, true | false


def _times(strings: pa.Array) -> tuple[Array, Array]:
    fits = flags(pc.match_substring_regex(strings, _TIME))
    found = pc.extract_regex(_only(strings, fits, "1970-01-01"), _TIME)
    part = {name: _digits(found, name) for name in ("year", "month", "day", "hour", "minute", "second")}
    days, exists = moment(part["year"], part["month"], part["day"])
    exists &= (part["year"] > 0) & (part["hour"] < 24) & (part["minute"] < 60) & (part["second"] < 60)
    fraction = pc.utf8_rpad(pc.fill_null(pc.struct_field(found, "fraction"), ""), 6, "0")
    seconds = (part["hour"] * 60 + part["minute"]) * 60 + part["second"]
    return days * _DAY + seconds * SECOND + _numbers(fraction), fits & exists


def _digits(found: pa.Array, name: str) -> Array:
    return _numbers(pc.utf8_lpad(pc.fill_null(pc.struct_field(found, name), ""), 1, "0"))


def _numbers(digits: pa.Array) -> Array:
    numbers: Array = digits.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _only(strings: pa.Array, fits: Array, filler: str = "0") -> pa.Array:
    return pc.if_else(pa.array(fits), strings, filler)


# -- to text


def _printed(operand: Operand, source: Type) -> Operand:
    values = operand.values
    if source.kind is Kind.BOOLEAN:
        words = pa.array(["false", "true"])
        return Operand(pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), words), operand.valid)
    if source.kind is Kind.INTEGER:
        return Operand(pa.array(values, pa.int64()).cast(pa.string()), operand.valid)
    fits = (values >= _FIRST) & (values < _BEYOND)
    text = pa.array(np.where(fits, values, 0), pa.int64()).cast(pa.timestamp("us")).cast(pa.string())
    shortened = pc.replace_substring_regex(text, r"\.?0*$", "", max_replacements=1)
    fraction = pc.match_substring(text, ".")
    return Operand(pc.if_else(fraction, shortened, text), both(operand.valid, fits))
