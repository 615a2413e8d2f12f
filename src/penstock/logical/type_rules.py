"""What may be compared and computed with what, and the type that comes out.

`logical.scalars` asks here after both operands are resolved; a `Mismatch` is a sentence without a place.
"""

from __future__ import annotations

from penstock.logical import constants
from penstock.logical.expressions import Arithmetic, Comparison, Expression, Literal
from penstock.logical.render import render
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, Kind, Type


class Mismatch(Exception):
    """Types that do not fit; the caller knows the place."""

    def __init__(self, fact: str, hint: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint


def described(expression: Expression) -> str:
    """An operand with its type, for messages."""
    return f"{render(expression)} ({expression.type})"


def is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def unify(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both operands of a comparison, constants turned into the other side's type."""
    left, right = _adapt(left, right.type), _adapt(right, left.type)
    kinds = {left.type.kind, right.type.kind}
    if Kind.PREFIX in kinds:
        raise Mismatch("comparing prefixes is not executable yet")
    if len(kinds) > 1 and not (left.type.numeric and right.type.numeric):
        raise Mismatch(f"cannot compare {described(left)} with {described(right)}", _quotes_hint(left, right))
    return left, right


def _adapt(operand: Expression, wanted: Type) -> Expression:
    if not isinstance(operand, Literal):
        return operand
    if operand.value is None:
        return Literal(None, wanted)
    if operand.type.kind is Kind.STRING and isinstance(operand.value, str):
        if wanted.kind is Kind.TIMESTAMP:
            return constants.timestamp(operand.value)
        if wanted.kind is Kind.INET:
            return constants.address(operand.value)
    return operand


def _quotes_hint(left: Expression, right: Expression) -> str:
    for constant, other in ((left, right), (right, left)):
        if isinstance(constant, Literal) and isinstance(constant.value, str) and other.type.numeric:
            try:
                return f"write {constants.number(constant.value).value} without quotes"
            except constants.BadConstant:
                return ""
    return ""


def compare(operator: str, left: Expression, right: Expression) -> Comparison:
    left, right = unify(left, right)
    return Comparison(operator, left, right)


def calculate(operator: str, left: Expression, right: Expression) -> Arithmetic:
    """Integers give BIGINT, so that narrow columns do not overflow; `/` and any DOUBLE give DOUBLE."""
    if is_null(left):
        left = Literal(None, right.type if not is_null(right) else BIGINT)
    if is_null(right):
        right = Literal(None, left.type)
    for operand in (left, right):
        if not operand.type.numeric:
            raise Mismatch(f"'{operator}' needs numbers, but {render(operand)} is {operand.type}")
    real = operator == "/" or DOUBLE in (left.type, right.type)
    return Arithmetic(operator, left, right, DOUBLE if real else BIGINT)


def truth(expression: Expression, where: str) -> Expression:
    """A condition must be BOOLEAN; a bare NULL is one that never holds."""
    if is_null(expression):
        return Literal(None, BOOLEAN)
    if expression.type.kind is not Kind.BOOLEAN:
        raise Mismatch(f"{where} needs a condition, but {render(expression)} is {expression.type}")
    return expression
