"""Expressions on columns: WHERE over a chunk of records, HAVING and the select list over finished groups.

An operand is a numpy array with a mask of what is not NULL; strings stay Arrow arrays (evaluated once per
dictionary value where they are dictionary-encoded), addresses are (version, high, low). Logic is three-valued;
NaN equals NaN and is above every number; an integer result that leaves 64 bits, and a division by zero, are NULL.

Nothing here loops over rows. Functions are in `runtime.expressions.functions`, casts in `runtime.expressions.casts`.
"""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from ipaddress import ip_address

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels import inet
from penstock.logical import expressions as ex
from penstock.logical.types import Kind
from penstock.runtime.expressions.casts import cast
from penstock.runtime.expressions.functions import call
from penstock.runtime.expressions.operands import (
    Addresses,
    Operand,
    both,
    choose,
    flags,
    nothing,
    ordering,
    per_text,
    present,
    repeated,
)

__all__ = ["Addresses", "Lookup", "Operand", "Scope", "evaluate", "truth"]

Array = np.ndarray
IPV4_BITS, IPV6_BITS = 32, 128
MICROSECONDS = 1e6

Lookup = Callable[[ex.Expression], Operand]


@dataclass(frozen=True)
class Scope:
    """What leaf expressions mean here, and how many rows there are.

    Over records `lookup` knows the stream's columns. Over groups (`grouped`) it knows keys, aggregates and the
    bucket; a key that is a prefix (as addresses that are cut already) or computed is looked up as a whole.
    `found` remembers what records have found in tables; `versions` are the contents of those that are read again.
    """

    lookup: Lookup
    rows: int
    grouped: bool = False
    found: dict[ex.Match, Operand] = field(default_factory=dict, repr=False, compare=False)
    versions: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


PLAIN = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal
}  # fmt: skip


def truth(expression: ex.Expression, scope: Scope) -> Array:
    """Rows for which a predicate is true (neither false nor NULL)."""
    result = evaluate(expression, scope)
    values = np.asarray(result.values, bool)
    return values if result.valid is None else values & result.valid


@singledispatch
def evaluate(expression: ex.Expression, scope: Scope) -> Operand:
    """The value of an expression for every row; anything not handled below is looked up in the scope."""
    return scope.lookup(expression)


@evaluate.register
def _(expression: ex.Computed, scope: Scope) -> Operand:
    return scope.lookup(expression) if scope.grouped else evaluate(expression.expression, scope)


@evaluate.register
def _(expression: ex.Prefix, scope: Scope) -> Operand:
    if scope.grouped:
        return scope.lookup(expression)
    whole = scope.lookup(expression.column)
    return Operand(_cut(whole.values, expression.length), whole.valid)


def _cut(addresses: Addresses, length: int) -> Addresses:
    """The first bits; an IPv4 address under a longer prefix keeps its 32."""
    high, low = inet.cut(addresses.high, addresses.low, length)
    _, short = inet.cut(addresses.high, addresses.low, min(length, IPV4_BITS) + IPV6_BITS - IPV4_BITS)
    return Addresses(addresses.version, high, np.where(addresses.version == 4, short, low))


@evaluate.register
def _(expression: ex.Literal, scope: Scope) -> Operand:
    value, rows = expression.value, scope.rows
    if value is None:
        return nothing(expression.type, rows)
    if isinstance(value, str) and expression.type.kind in (Kind.INET, Kind.PREFIX):
        address = ip_address(value.partition("/")[0])
        number = int(address)
        parts = (address.version, number >> 64, number & ((1 << 64) - 1))
        kinds = (np.uint8, np.uint64, np.uint64)
        return Operand(Addresses(*(np.full(rows, part, kind) for part, kind in zip(parts, kinds, strict=True))))
    if isinstance(value, str):
        return Operand(repeated(value, rows))
    return Operand(np.broadcast_to(np.asarray(value), (rows,)))  # one value, whatever the number of rows


@evaluate.register
def _(expression: ex.Comparison, scope: Scope) -> Operand:
    left, right = evaluate(expression.left, scope), expression.right
    if isinstance(right, ex.Literal) and isinstance(right.value, str) and isinstance(left.values, pa.Array):
        return per_text(left, _text_comparison(expression.operator, right.value))
    return _compare(expression.operator, left, evaluate(right, scope))


def _compare(operator: str, left: Operand, right: Operand) -> Operand:
    numbers = all(isinstance(side.values, np.ndarray) and side.values.dtype.kind == "i" for side in (left, right))
    if numbers:
        return Operand(PLAIN[operator](left.values, right.values), both(left.valid, right.valid))
    below, equal = ordering(left.values, right.values)
    result = {"=": equal, "<>": equal, "<": below, ">=": below}.get(operator)
    if result is None:  # <= and its opposite >
        result = below | equal
    if operator in ("<>", ">", ">="):
        result = ~result
    return Operand(result, both(left.valid, right.valid))


def _text_comparison(operator: str, text: str) -> Callable[[pa.Array], tuple[Array, None]]:
    compare = {
        "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal
    }[operator]  # fmt: skip
    literal = pa.scalar(text.encode(), pa.binary())
    return lambda strings: (flags(compare(strings.cast(pa.binary()), literal)), None)


@evaluate.register
def _(expression: ex.Arithmetic, scope: Scope) -> Operand:
    left, right = evaluate(expression.left, scope), evaluate(expression.right, scope)
    valid = both(left.valid, right.valid)
    if expression.operator in ("/", "%"):
        valid = both(valid, _nonzero(right.values))
    with np.errstate(all="ignore"):
        if expression.operator == "/":
            return Operand(np.true_divide(left.values, right.values), valid)
        if expression.operator == "%":
            return Operand(_remainder(left.values, right.values), valid)
        result = _sum(expression.operator, left.values, right.values, valid)
    if expression.left.type.kind is Kind.TIMESTAMP and expression.type.kind is Kind.DOUBLE:
        return Operand(result.values / MICROSECONDS, result.valid)
    return result


def _nonzero(values: Array) -> Array | None:
    """Where a divisor can be divided by; None: everywhere, as of most that are written down."""
    if values.strides == (0,) and len(values) and values[0] != 0:
        return None
    return np.asarray(values != 0)


def _remainder(left: Array, right: Array) -> Array:
    """Of the dividend's sign; anything where the divisor is 0. The common case is one that needs no division."""
    if left.dtype.kind == right.dtype.kind == "i" and len(left):
        divisor = int(right[0])
        one = right.strides == (0,) or bool((right == divisor).all())
        if divisor > 0 and divisor & (divisor - 1) == 0 and one and left.min() >= 0:
            return np.asarray(left & (divisor - 1))
    return np.asarray(np.fmod(left, np.where(right == 0, 1, right)))


def _sum(operator: str, left: Array, right: Array, valid: Array | None) -> Operand:
    """+ - *; integers that leave 64 bits are NULL."""
    operation = {"+": operators.add, "-": operators.sub, "*": operators.mul}[operator]
    result = operation(left, right)
    if result.dtype.kind == "f" or _fits(operation, left, right):
        return Operand(result, valid)
    wanted = operation(left.astype(np.longdouble), right.astype(np.longdouble))
    return Operand(result, both(valid, wanted == result))


def _fits(operation: Callable[[int, int], int], left: Array, right: Array) -> bool:
    """Whether no result can leave 64 bits, by the extremes of the operands."""
    if not len(left):
        return True
    ends = [operation(int(a), int(b)) for a in (left.min(), left.max()) for b in (right.min(), right.max())]
    return min(ends) >= -(1 << 63) and max(ends) < 1 << 63


@evaluate.register
def _(expression: ex.Logic, scope: Scope) -> Operand:
    """AND is NULL unless an operand is false; OR is NULL unless an operand is true (Kleene)."""
    settled = expression.operator == "OR"
    decided, known = np.zeros(scope.rows, bool), np.ones(scope.rows, bool)
    for operand in expression.operands:
        result = evaluate(operand, scope)
        valid = present(result, scope.rows)
        decided |= valid & (np.asarray(result.values, bool) == settled)
        known &= valid
    return Operand(decided if settled else ~decided, decided | known)


@evaluate.register
def _(expression: ex.Not, scope: Scope) -> Operand:
    result = evaluate(expression.operand, scope)
    return Operand(~np.asarray(result.values, bool), result.valid)


@evaluate.register
def _(expression: ex.IsNull, scope: Scope) -> Operand:
    valid = evaluate(expression.operand, scope).valid
    return Operand(np.zeros(scope.rows, bool) if valid is None else ~valid)


@evaluate.register
def _(expression: ex.InList, scope: Scope) -> Operand:
    items = [item for item in expression.items if item.value is not None]
    found = np.zeros(scope.rows, bool)
    operand = evaluate(expression.operand, scope)
    valid = operand.valid
    # The operand is computed once: a leaf of this scope that stands for it.
    leaf = ex.Column("operand", expression.operand.type)
    inner = Scope(lambda _: operand, scope.rows)
    for item in items:
        found |= evaluate(ex.Comparison("=", leaf, item), inner).values
    if len(items) < len(expression.items):
        valid = both(valid, found)
    return Operand(found, valid)


@evaluate.register
def _(expression: ex.Like, scope: Scope) -> Operand:
    whole = rf"(?s)\A{_pattern(expression.pattern, expression.escape)}\z"
    matches = lambda strings: (flags(pc.match_substring_regex(strings, pattern=whole)), None)  # noqa: E731
    return per_text(evaluate(expression.operand, scope), matches)


def _pattern(pattern: str, escape: str) -> str:
    """% and _ only; without ESCAPE a backslash is a backslash, as in the SQL standard."""
    wild = {"%": ".*", "_": "."}
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re.escape(next(characters)))
        else:
            parts.append(wild.get(character) or re.escape(character))
    return "".join(parts)


@evaluate.register
def _(expression: ex.Case, scope: Scope) -> Operand:
    kind, default = expression.type, expression.default
    result = nothing(kind, scope.rows) if default is None else evaluate(default, scope)
    for test, value in reversed(expression.branches):
        result = choose(truth(test, scope), evaluate(value, scope), result, kind)
    return result


@evaluate.register
def _(expression: ex.Cast, scope: Scope) -> Operand:
    return cast(evaluate(expression.operand, scope), expression.operand.type, expression.type)


@evaluate.register
def _(expression: ex.Call, scope: Scope) -> Operand:
    return call(expression, [evaluate(argument, scope) for argument in expression.arguments], scope.rows)


@evaluate.register
def _(expression: ex.Lookup, scope: Scope) -> Operand:
    from penstock.runtime.expressions.lookups import looked_up  # with kernels that few apps need

    return looked_up(expression, scope)
