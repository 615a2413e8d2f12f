"""Logical expressions → DuckDB SQL, for the oracle.

Values stand in DuckDB as `columns` says: integers and timestamps BIGINT, addresses as sortable text.  Literals
become numbered parameters, so no text of a user is ever quoted here.  DuckDB already compares strings as bytes
and NaN as equal to NaN and greater than every number, as the engine's semantics demand.  Functions and casts are
in `duck_functions`.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.logical.expressions import (
    Aggregate,
    Arithmetic,
    Bucket,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Computed,
    Expression,
    InList,
    IsNull,
    Like,
    Listed,
    Literal,
    Logic,
    Lookup,
    Not,
    Prefix,
    RecordNumber,
    Sound,
    Triaged,
    WindowEnd,
)
from penstock.logical.types import Kind, Type
from penstock.testing.oracle.addresses import code_of_prefix_text, code_of_text
from penstock.testing.oracle.duck_functions import call_sql, cast_sql

Value = bool | int | float | str | None

SQL_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.TIMESTAMP: "BIGINT",
    Kind.STRING: "VARCHAR",
    Kind.INET: "VARCHAR",
    Kind.PREFIX: "VARCHAR",
}


class Translator:
    """Translates against one table; `names` says how its columns are called there.

    A computed column that has no name there is computed on the spot.
    """

    def __init__(self, names: Mapping[Expression, str]) -> None:
        self.names = names
        self.parameters: dict[str, Value] = {}

    def sql(self, expression: Expression) -> str:
        match expression:
            case Column() | Prefix() | Aggregate() | Listed() | Bucket() | WindowEnd() | RecordNumber() | Sound():
                return self.names[expression]
            case Triaged():
                return self.names[expression]
            case Computed(_, inner):
                return self.names[expression] if expression in self.names else self.sql(inner)
            case Literal(value, kind):
                return self._literal(value, kind)
            case Arithmetic(operator, left, right, kind):
                return self._arithmetic(operator, left, right, kind)
            case Comparison(operator, left, right):
                return self._comparison(operator, left, right)
            case Logic(operator, operands):
                return "(" + f" {operator.upper()} ".join(self.sql(o) for o in operands) + ")"
            case Not(operand):
                return f"(NOT {self.sql(operand)})"
            case IsNull(operand):
                return f"({self.sql(operand)} IS NULL)"
            case InList(operand, items):
                return "(" + " OR ".join(self._comparison("=", operand, item) for item in items) + ")"
            case Like(operand, pattern, escape=escape):
                escaped = f" ESCAPE {self._parameter(escape, 'VARCHAR')}" if escape else ""
                return f"({self.sql(operand)} LIKE {self._parameter(pattern, 'VARCHAR')}{escaped})"
            case Case():
                return self._case(expression)
            case Cast(operand, kind):
                return cast_sql(self.sql(operand), operand.type, kind)
            case Call(function, arguments, kind):
                # The digits of round are read from the expression: a parameter that is not used is an error.
                used = arguments[:1] if function == "round" else arguments
                return call_sql(function, [self._as(argument, kind) for argument in used], arguments)
            case Lookup(match):
                raise TypeError(f"rows of table '{match.table}' are joined by SQL of their own")

    def _as(self, value: Expression, kind: Type) -> str:
        """A value among others; whole numbers among doubles are doubles."""
        text = self.sql(value)
        widened = kind.kind is Kind.DOUBLE and value.type.kind is Kind.INTEGER
        return f"CAST({text} AS DOUBLE)" if widened else text

    def _case(self, case: Case) -> str:
        branches = [f"WHEN {self.sql(test)} THEN {self._as(value, case.type)}" for test, value in case.branches]
        default = "NULL" if case.default is None else self._as(case.default, case.type)
        return f"(CASE {' '.join(branches)} ELSE {default} END)"

    def _literal(self, value: Value, kind: Type) -> str:
        if isinstance(value, str) and kind.kind is Kind.INET:
            value = code_of_text(value)
        if isinstance(value, str) and kind.kind is Kind.PREFIX:
            value = code_of_prefix_text(value)
        return self._parameter(value, SQL_TYPES[kind.kind])

    def _parameter(self, value: Value, sql_type: str) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"CAST(${name} AS {sql_type})"

    def _arithmetic(self, operator: str, left: Expression, right: Expression, kind: Type) -> str:
        if left.type.kind is Kind.TIMESTAMP and kind.kind is Kind.DOUBLE:
            apart = f"CAST({self.sql(left)} AS HUGEINT) - CAST({self.sql(right)} AS HUGEINT)"
            return f"(CAST(TRY_CAST({apart} AS BIGINT) AS DOUBLE) / 1000000)"
        # Integers are wide inside; what does not fit BIGINT at the end of a step is NULL (a sum would end the run).
        inner, outer = ("DOUBLE", "DOUBLE") if kind.kind is Kind.DOUBLE else ("HUGEINT", "BIGINT")
        a, b = (f"CAST({self.sql(side)} AS {inner})" for side in (left, right))
        computed = f"TRY_CAST({a} {operator} {b} AS {outer})"
        return f"(CASE WHEN {b} = 0 THEN NULL ELSE {computed} END)" if operator in "/%" else computed

    def _comparison(self, operator: str, left: Expression, right: Expression) -> str:
        a, b = self.sql(left), self.sql(right)
        if {left.type.kind, right.type.kind} == {Kind.INTEGER, Kind.DOUBLE}:
            a, b = f"CAST({a} AS DOUBLE)", f"CAST({b} AS DOUBLE)"
        return f"({a} {operator} {b})"
