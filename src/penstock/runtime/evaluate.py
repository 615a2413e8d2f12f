"""Expressions on columns: WHERE over a chunk of tuples, HAVING and the select list over finished groups.

An operand is a numpy array with a mask of what is not NULL; strings stay Arrow arrays (evaluated once per
dictionary value where they are dictionary-encoded), addresses are (version, high, low). Logic is three-valued;
NaN equals NaN and is above every number; an integer result that leaves 64 bits, and a division by zero, are NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from ipaddress import ip_address
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.logical import expressions as ex
from penstock.logical.types import Kind

Array = np.ndarray


@dataclass(frozen=True)
class Addresses:
    """Addresses as numbers; IPv4 sorts before IPv6, numerically inside."""

    version: Array
    high: Array
    low: Array


@dataclass(frozen=True)
class Operand:
    """`values` are numbers, booleans, `Addresses` or an Arrow string array; `valid` None: no NULLs."""

    values: Any
    valid: Array | None = None


Lookup = Callable[[ex.Expression], Operand]


@dataclass(frozen=True)
class Scope:
    """What leaf expressions (columns, keys, aggregates) mean here, and how many rows there are."""

    lookup: Lookup
    rows: int


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
def _(expression: ex.Literal, scope: Scope) -> Operand:
    value, n = expression.value, scope.rows
    if value is None:
        return Operand(np.zeros(n, np.int64), np.zeros(n, bool))
    if isinstance(value, str) and expression.type.kind is Kind.INET:
        address = ip_address(value)
        number = int(address)
        parts = (address.version, number >> 64, number & ((1 << 64) - 1))
        kinds = (np.uint8, np.uint64, np.uint64)
        return Operand(Addresses(*(np.full(n, part, kind) for part, kind in zip(parts, kinds, strict=True))))
    if isinstance(value, str):
        return Operand(pa.repeat(pa.scalar(value, pa.string()), n))
    return Operand(np.full(n, value))


@evaluate.register
def _(expression: ex.Comparison, scope: Scope) -> Operand:
    if isinstance(expression.right, ex.Literal) and isinstance(expression.right.value, str):
        left = evaluate(expression.left, scope)
        if isinstance(left.values, pa.Array):
            return _per_string(left, _string_comparison(expression.operator, expression.right.value))
        return _compare(expression.operator, left, evaluate(expression.right, scope))
    return _compare(expression.operator, evaluate(expression.left, scope), evaluate(expression.right, scope))


def _compare(operator: str, left: Operand, right: Operand) -> Operand:
    below, equal = _ordering(left.values, right.values)
    result = {"=": equal, "<>": equal, "<": below, ">=": below}.get(operator)
    if result is None:  # <= and its opposite >
        result = below | equal
    if operator in ("<>", ">", ">="):
        result = ~result
    return Operand(result, _both(left.valid, right.valid))


def _ordering(left: Any, right: Any) -> tuple[Array, Array]:
    """(left < right, left = right) in the engine's order."""
    if isinstance(left, Addresses):
        same_version, same_high = left.version == right.version, left.high == right.high
        below = (left.high < right.high) | (same_high & (left.low < right.low))
        equal = same_version & same_high & (left.low == right.low)
        return (left.version < right.version) | (same_version & below), equal
    if isinstance(left, pa.Array):
        one, other = (_decoded(side).cast(pa.binary()) for side in (left, right))
        return _booleans(pc.less(one, other)), _booleans(pc.equal(one, other))
    below, equal = left < right, left == right
    if np.result_type(left, right).kind == "f":
        one, other = np.isnan(left), np.isnan(right)
        return below | (other & ~one), equal | (one & other)
    return below, equal


def _string_comparison(operator: str, text: str) -> Callable[[pa.Array], pa.Array]:
    compare = {
        "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal
    }[operator]  # fmt: skip
    literal = pa.scalar(text.encode(), pa.binary())
    return lambda strings: compare(strings.cast(pa.binary()), literal)


def _per_string(operand: Operand, predicate: Callable[[pa.Array], pa.Array]) -> Operand:
    """Apply a predicate to strings; only once per distinct value where they are dictionary-encoded."""
    strings = operand.values
    if pa.types.is_dictionary(strings.type):
        known = np.append(_booleans(predicate(strings.dictionary)), False)
        indices = pc.fill_null(strings.indices, len(known) - 1).to_numpy(zero_copy_only=False)
        return Operand(known[indices], operand.valid)
    return Operand(_booleans(predicate(strings)), operand.valid)


@evaluate.register
def _(expression: ex.Arithmetic, scope: Scope) -> Operand:
    left, right = evaluate(expression.left, scope), evaluate(expression.right, scope)
    valid = _both(left.valid, right.valid)
    if expression.operator in ("/", "%"):
        valid = _both(valid, right.values != 0)
    with np.errstate(all="ignore"):
        if expression.operator == "/":
            return Operand(np.true_divide(left.values, right.values), valid)
        if expression.operator == "%":
            divisor = np.where(right.values == 0, 1, right.values)
            return Operand(np.fmod(left.values, divisor), valid)
        operation = {"+": np.add, "-": np.subtract, "*": np.multiply}[expression.operator]
        result = operation(left.values, right.values)
        if result.dtype.kind == "f":
            return Operand(result, valid)
        wanted = operation(left.values.astype(np.longdouble), right.values.astype(np.longdouble))
        return Operand(result, _both(valid, wanted == result))


@evaluate.register
def _(expression: ex.Logic, scope: Scope) -> Operand:
    """AND is NULL unless an operand is false; OR is NULL unless an operand is true (Kleene)."""
    settled = expression.operator == "OR"
    decided, known = np.zeros(scope.rows, bool), np.ones(scope.rows, bool)
    for operand in expression.operands:
        result = evaluate(operand, scope)
        valid = np.ones(scope.rows, bool) if result.valid is None else result.valid
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
    valid = evaluate(expression.operand, scope).valid
    for item in items:
        found |= evaluate(ex.Comparison("=", expression.operand, item), scope).values
    if len(items) < len(expression.items):
        valid = _both(valid, found)
    return Operand(found, valid)


@evaluate.register
def _(expression: ex.Like, scope: Scope) -> Operand:
    # % and _ only; a backslash is a backslash, as in the SQL standard.
    wild = {"%": ".*", "_": "."}
    pattern = "".join(wild.get(character, re.escape(character)) for character in expression.pattern)
    whole = rf"(?s)\A{pattern}\z"
    return _per_string(
        evaluate(expression.operand, scope), lambda strings: pc.match_substring_regex(strings, pattern=whole)
    )


def _both(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    both: Array = one & other
    return both


def _decoded(strings: pa.Array) -> pa.Array:
    return strings.dictionary_decode() if pa.types.is_dictionary(strings.type) else strings


def _booleans(result: pa.Array) -> Array:
    flags: Array = pc.fill_null(result, False).to_numpy(zero_copy_only=False)
    return flags
