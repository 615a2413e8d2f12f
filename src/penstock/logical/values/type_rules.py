"""What may be compared and computed with what, and the type that comes out.

`scalars`, `predicates` and `functions` ask here after all operands are resolved; a `Mismatch` is a sentence
without a place.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.logical.expressions import Arithmetic, Comparison, Expression, Literal, Prefix
from penstock.logical.render import render
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, Kind, Type
from penstock.logical.values import constants


class Mismatch(Exception):
    """Types that do not fit; the caller knows the place. `argument` is the number of the one that is to blame."""

    def __init__(self, fact: str, hint: str = "", argument: int | None = None) -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint
        self.argument = argument


def described(expression: Expression) -> str:
    """An operand with its type, for messages."""
    return f"{render(expression)} ({expression.type})"


def is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


# -- comparisons


def compare(operator: str, left: Expression, right: Expression) -> Comparison:
    left, right = unify(left, right)
    return Comparison(operator, left, right)


def unify(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both operands of a comparison, constants turned into the other side's type."""
    left, right = _adapt(left, right), _adapt(right, left)
    if left.type.kind is not right.type.kind and not (left.type.numeric and right.type.numeric):
        raise Mismatch(f"cannot compare {described(left)} with {described(right)}", _compare_hint(left, right))
    if isinstance(left, Prefix) and isinstance(right, Prefix) and left.length != right.length:
        fact = f"cannot compare prefixes of {left.length} and {right.length} bits"
        raise Mismatch(fact, "cut both to the same length")
    return left, right


def _adapt(operand: Expression, other: Expression) -> Expression:
    """A text constant, or NULL, in the type of the other operand."""
    if not isinstance(operand, Literal):
        return operand
    if isinstance(other, Prefix) and isinstance(operand.value, str) and operand.type.kind is Kind.STRING:
        return constants.prefix(operand.value, other.length)
    return adapt(operand, other.type)


def adapt(operand: Expression, wanted: Type) -> Expression:
    """A text constant as a time or an address where one is wanted; NULL in any type."""
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


def _compare_hint(left: Expression, right: Expression) -> str:
    for constant, other in ((left, right), (right, left)):
        if isinstance(constant, Literal) and isinstance(constant.value, str) and other.type.numeric:
            try:
                return f"write {constants.number(constant.value).value} without quotes"
            except constants.BadConstant:
                return f"{render(other)} is a number: compare it with one"
        if isinstance(constant, Prefix) and other.type.kind is Kind.INET:
            return f"cut both: {render(other)}/{constant.length}"
    return ""


# -- arithmetic


def calculate(operator: str, left: Expression, right: Expression) -> Arithmetic:
    """Integers give BIGINT, so that narrow columns do not overflow; `/` and any DOUBLE give DOUBLE.

    The difference of two times is their distance in seconds, a DOUBLE.
    """
    left, right = _typed_null(left, right), _typed_null(right, left)
    if operator == "-" and TIMESTAMP in (left.type, right.type):
        left, right = adapt(left, TIMESTAMP), adapt(right, TIMESTAMP)
        if left.type == right.type:
            return Arithmetic("-", left, right, DOUBLE)
    for operand in (left, right):
        if not operand.type.numeric:
            fact = f"'{operator}' needs numbers, but {render(operand)} is {operand.type}"
            network = operator == "/" and operand is left and isinstance(right, Literal)
            raise Mismatch(fact, _network_hint(operand) if network else _hint(operator, operand))
    real = operator == "/" or DOUBLE in (left.type, right.type)
    return Arithmetic(operator, left, right, DOUBLE if real else BIGINT)


def shift(operator: str, time: Expression, microseconds: int) -> Arithmetic:
    """A time moved by an interval."""
    time = adapt(time, TIMESTAMP)
    if time.type != TIMESTAMP:
        raise Mismatch(f"an interval can be added to a TIMESTAMP, but {render(time)} is {time.type}")
    return Arithmetic(operator, time, Literal(microseconds, BIGINT), TIMESTAMP)


def _typed_null(operand: Expression, other: Expression) -> Expression:
    if not is_null(operand):
        return operand
    return Literal(None, BIGINT if is_null(other) else other.type)


def _network_hint(operand: Expression) -> str:
    """`src/24` of text: an address was meant."""
    if operand.type.kind is not Kind.STRING:
        return _hint("/", operand)
    name = render(operand)
    return f"a network is cut out of an address: declare {name} as INET where its stream is created"


def _hint(operator: str, operand: Expression) -> str:
    if operand.type.kind is Kind.TIMESTAMP:
        return "epoch(x) gives a time as seconds; INTERVAL '5 minutes' can be added to one"
    return "join texts with ||" if operand.type.kind is Kind.STRING and operator == "+" else ""


# -- values that become one column


def common(values: Sequence[Expression], what: str) -> tuple[tuple[Expression, ...], Type]:
    """Values of which one is chosen (CASE, coalesce, least), constants adapted, and the type of the choice."""
    known = [value for value in values if not is_null(value)]
    if not known:
        raise Mismatch(f"{what} has only NULLs, which have no type", "cast one of them, like CAST(NULL AS BIGINT)")
    # A text constant follows the others, so a type that is not just a constant's decides.
    first = next((value for value in known if not isinstance(value, Literal)), known[0])
    if first.type.kind is Kind.PREFIX:
        raise Mismatch(f"a prefix in {what} is not executable yet")
    adapted = tuple(adapt(value, first.type) for value in values)
    for value in adapted:
        if value.type.kind is not first.type.kind and not (value.type.numeric and first.type.numeric):
            raise Mismatch(f"{what} mixes {described(first)} with {described(value)}", "cast one of them")
    chosen = first.type
    if chosen.numeric:
        types = [value.type for value in adapted if not is_null(value)]
        chosen = DOUBLE if DOUBLE in types else max(types, key=lambda kind: kind.bits)
    return tuple(Literal(None, chosen) if is_null(value) else value for value in adapted), chosen


def truth(expression: Expression, where: str) -> Expression:
    """A condition must be BOOLEAN; a bare NULL is one that never holds."""
    if is_null(expression):
        return Literal(None, BOOLEAN)
    if expression.type.kind is not Kind.BOOLEAN:
        raise Mismatch(f"{where} needs a condition, but {render(expression)} is {expression.type}")
    return expression
