"""Scalar functions and casts → DuckDB SQL, for the oracle. `duck` translates the arguments.

Times are BIGINT microseconds, so they pass through make_timestamp and back.  Where DuckDB has another opinion
(the root of −1 is an error, a cast rounds halves to even), the SQL says what the engine's semantics demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.logical.expressions import Expression, Literal
from penstock.logical.types import Kind, Type

_PLAIN = {
    "lower", "upper", "substr", "replace", "starts_with", "coalesce", "least", "greatest", "floor", "ceil", "exp"
}  # fmt: skip
_PARTS = {"year", "month", "day", "hour", "minute", "second"}
_INTEGERS = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}
_WHOLE = "' *[+-]?[0-9]+ *'"
_REAL = r"' *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *'"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_TIME = rf"' *[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{_CLOCK})?Z? *'"
_FIRST, _BEYOND = -62_135_596_800_000_000, 253_402_300_800_000_000  # the years 1 and 10000


def call_sql(function: str, arguments: list[str], expressions: Sequence[Expression]) -> str:
    """`arguments` are the translated `expressions`."""
    if function in _PLAIN:
        return f"{function}({', '.join(arguments)})"
    if function in _PARTS:
        return f"CAST({function}(make_timestamp({arguments[0]})) AS BIGINT)"
    if function in ("trim", "ltrim", "rtrim"):
        return f"{function}({arguments[0]}, {arguments[1] if len(arguments) > 1 else repr(' ')})"
    return _CALLS[function](arguments, expressions)


def _abs(arguments: list[str], expressions: Sequence[Expression]) -> str:
    if expressions[0].type.kind is Kind.DOUBLE:
        return f"abs({arguments[0]})"
    return f"TRY_CAST(abs(CAST({arguments[0]} AS HUGEINT)) AS BIGINT)"


def _round(arguments: list[str], expressions: Sequence[Expression]) -> str:
    digits = expressions[1].value if len(expressions) > 1 and isinstance(expressions[1], Literal) else 0
    assert isinstance(digits, int)
    if expressions[0].type.kind is Kind.DOUBLE:
        return f"round({arguments[0]}, {digits})"
    if digits >= 0:
        return arguments[0]
    unit, wide = 10**-digits, f"CAST({arguments[0]} AS HUGEINT)"
    size = f"((abs({wide}) + {unit // 2}) // {unit} * {unit})"
    return f"TRY_CAST(CASE WHEN {arguments[0]} < 0 THEN -{size} ELSE {size} END AS BIGINT)"


def _where(function: str, missing: str) -> Callable[[list[str], Sequence[Expression]], str]:
    def sql(arguments: list[str], expressions: Sequence[Expression]) -> str:
        return f"(CASE WHEN {arguments[0]} {missing} THEN NULL ELSE {function}({arguments[0]}) END)"

    return sql


def _power(arguments: list[str], expressions: Sequence[Expression]) -> str:
    base, exponent = arguments
    result = f"power({base}, {exponent})"
    missing = f"({base} = 0 AND {exponent} < 0) OR (isnan({result}) AND NOT isnan({base}) AND NOT isnan({exponent}))"
    return f"(CASE WHEN {missing} THEN NULL ELSE {result} END)"


def _nullif(arguments: list[str], expressions: Sequence[Expression]) -> str:
    return f"(CASE WHEN {arguments[0]} = {arguments[1]} THEN NULL ELSE {arguments[0]} END)"


def _date_trunc(arguments: list[str], expressions: Sequence[Expression]) -> str:
    return f"epoch_us(CAST(date_trunc({arguments[0]}, make_timestamp({arguments[1]})) AS TIMESTAMP))"


_CALLS: dict[str, Callable[[list[str], Sequence[Expression]], str]] = {
    "abs": _abs,
    "sign": lambda arguments, _: f"CAST(sign({arguments[0]}) AS BIGINT)",
    "round": _round,
    "sqrt": _where("sqrt", "< 0"),
    "ln": _where("ln", "<= 0"),
    "log10": _where("log10", "<= 0"),
    "power": _power,
    "nullif": _nullif,
    "length": lambda arguments, _: f"length({arguments[0]})",
    "concat": lambda arguments, _: f"({' || '.join(arguments)})",
    "epoch": lambda arguments, _: f"(CAST({arguments[0]} AS DOUBLE) / 1000000)",
    "date_trunc": _date_trunc,
}


def cast_sql(operand: str, source: Type, target: Type) -> str:
    if source.kind is target.kind and source.kind is not Kind.INTEGER:
        return operand
    if source.kind is Kind.STRING:
        return _from_text(operand, target)
    if target.kind is Kind.STRING:
        if source.kind is not Kind.TIMESTAMP:
            return f"CAST({operand} AS VARCHAR)"
        inside = f"{operand} >= {_FIRST} AND {operand} < {_BEYOND}"
        return f"(CASE WHEN {inside} THEN CAST(make_timestamp({operand}) AS VARCHAR) END)"
    if target.kind is Kind.INTEGER:
        whole = f"trunc({operand})" if source.kind is Kind.DOUBLE else operand
        return _narrow(f"TRY_CAST({whole} AS BIGINT)", target)
    return f"CAST({operand} AS {'DOUBLE' if target.kind is Kind.DOUBLE else 'BOOLEAN'})"


def _narrow(operand: str, target: Type) -> str:
    return f"CAST(TRY_CAST({operand} AS {_INTEGERS[target.bits]}) AS BIGINT)"


def _from_text(operand: str, target: Type) -> str:
    text = f"trim({operand}, ' ')"
    match target.kind:
        case Kind.INTEGER:
            return _narrow(
                f"(CASE WHEN regexp_full_match({operand}, {_WHOLE}) THEN TRY_CAST({text} AS BIGINT) END)", target
            )
        case Kind.DOUBLE:
            number = f"TRY_CAST({text} AS DOUBLE)"
            return f"(CASE WHEN regexp_full_match({operand}, {_REAL}) AND isfinite({number}) THEN {number} END)"
        case Kind.BOOLEAN:
            word = f"lower({text})"
            true, false = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"
            return f"(CASE WHEN {word} IN {true} THEN true WHEN {word} IN {false} THEN false END)"
    usual = f"regexp_full_match({operand}, {_TIME}) AND NOT starts_with({text}, '0000')"
    return f"(CASE WHEN {usual} THEN epoch_us(TRY_CAST({text} AS TIMESTAMP)) END)"
