"""Parsed expressions to typed ones, the same for WHERE, HAVING and the select list.

What a name or a call means differs between them; a `Scope` (see `scopes.py`) answers that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import span_of
from penstock.lang.text import AppText
from penstock.logical import constants, type_rules
from penstock.logical.expressions import Comparison, Expression, InList, IsNull, Like, Literal, Logic, Not
from penstock.logical.render import render
from penstock.logical.types import BOOLEAN, DOUBLE, STRING, Kind

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_OPERATORS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_LATER: dict[type[exp.Expr], str] = {
    exp.Interval: "arithmetic with intervals",
    exp.Case: "CASE",
    exp.Cast: "CAST",
    exp.Subquery: "a subquery in an expression",
    exp.Exists: "EXISTS",
    exp.ILike: "ILIKE",
    exp.Escape: "LIKE with ESCAPE",
    exp.Filter: "FILTER",
    exp.Window: "OVER",
}
T = TypeVar("T")


class Scope(Protocol):
    """What names and calls mean in one clause."""

    @property
    def text(self) -> AppText: ...

    def known(self, node: exp.Expr) -> Expression | None:
        """A whole expression with a meaning of its own here, such as a grouped prefix."""
        ...

    def name(self, node: exp.Column) -> Expression: ...

    def call(self, node: exp.Anonymous) -> Expression: ...


def not_yet(text: AppText, node: exp.Expr, feature: str, hint: str = "") -> QueryError:
    return text.error(span_of(node), f"{feature} is not executable yet", hint)


def resolve_scalar(node: exp.Expr, scope: Scope) -> Expression:
    known = scope.known(node)
    if known is not None:
        return known
    if isinstance(node, exp.Paren):
        return resolve_scalar(node.this, scope)
    if isinstance(node, exp.Column):
        return scope.name(node)
    if isinstance(node, exp.Anonymous):
        return scope.call(node)
    if (constant := resolve_constant(node, scope.text)) is not None:
        return constant
    if isinstance(node, exp.Connector | exp.Not):
        return _logic(node, scope)
    if type(node) in _COMPARISONS or type(node) in _OPERATORS:
        return _binary(node, scope)
    if isinstance(node, exp.Neg):
        return _negative(node, scope)
    return _test(node, scope)


def resolve_condition(node: exp.Expr, scope: Scope, where: str) -> Expression:
    return _placed(node, scope, lambda: type_rules.truth(resolve_scalar(node, scope), where))


def _placed(node: exp.Expr, scope: Scope, build: Callable[[], T]) -> T:
    """Run a rule, and give its complaint the node's place."""
    try:
        return build()
    except type_rules.Mismatch as problem:
        raise scope.text.error(span_of(node), problem.fact, problem.hint) from None


# -- constants


def resolve_constant(node: exp.Expr, text: AppText) -> Literal | None:
    """The value of a literal node, a negative number included; None for anything else."""
    try:
        literal = _constant(node)
    except constants.BadConstant as problem:
        raise text.error(span_of(node), str(problem)) from None
    if literal is not None and isinstance(literal.value, int) and literal.value == 2**63:
        raise text.error(span_of(node), "the number does not fit BIGINT")
    return literal


def _constant(node: exp.Expr) -> Literal | None:
    match node:
        case exp.Null():
            return Literal(None, BOOLEAN)
        case exp.Boolean():
            return Literal(bool(node.this), BOOLEAN)
        case exp.Literal():
            return Literal(node.name, STRING) if node.is_string else constants.number(node.name)
        case exp.Cast() if isinstance(node.to, exp.DataType) and isinstance(node.this, exp.Literal):
            return constants.timestamp(node.this.name)
        case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
            value = constants.number(node.this.name).value
            if isinstance(value, int):
                return constants.integer(-value)
            return Literal(-value, DOUBLE) if isinstance(value, float) else None
    return None


# -- operators


def _logic(node: exp.Connector | exp.Not, scope: Scope) -> Expression:
    if isinstance(node, exp.Not):
        return Not(resolve_condition(node.this, scope, "NOT"))
    operator = "AND" if isinstance(node, exp.And) else "OR"
    operands: list[exp.Expr] = []
    rest: exp.Expr = node
    # A chain leans to the left and may be long: walk down it instead of recursing.
    while type(rest) is type(node):
        operands.append(rest.args["expression"])
        rest = rest.this
    operands.append(rest)
    resolved: list[Expression] = []
    for operand in reversed(operands):
        condition = resolve_condition(operand, scope, operator)
        # (a AND b) AND c is a AND b AND c: equal conditions then compare equal, however they were grouped.
        same = isinstance(condition, Logic) and condition.operator == operator
        resolved.extend(condition.operands if isinstance(condition, Logic) and same else (condition,))
    return Logic(operator, tuple(resolved))


def _binary(node: exp.Expr, scope: Scope) -> Expression:
    left_node, right_node = node.this, node.args["expression"]
    left, right = resolve_scalar(left_node, scope), resolve_scalar(right_node, scope)
    if type(node) in _OPERATORS:
        return _placed(node, scope, lambda: type_rules.calculate(_OPERATORS[type(node)], left, right))
    return _compare(node, _COMPARISONS[type(node)], (left_node, left), (right_node, right), scope)


_Operand = tuple[exp.Expr, Expression]


def _compare(node: exp.Expr, operator: str, left: _Operand, right: _Operand, scope: Scope) -> Expression:
    try:
        return _placed(node, scope, lambda: type_rules.compare(operator, left[1], right[1]))
    except constants.BadConstant as problem:
        # Only a text constant can be bad here, and it is one of the two.
        bad = right if isinstance(right[1], Literal) else left
        raise scope.text.error(span_of(bad[0]), str(problem)) from None


def _negative(node: exp.Neg, scope: Scope) -> Expression:
    operand = resolve_scalar(node.this, scope)
    zero = Literal(0.0, operand.type) if operand.type == DOUBLE else constants.integer(0)
    return _placed(node, scope, lambda: type_rules.calculate("-", zero, operand))


# -- tests


def _test(node: exp.Expr, scope: Scope) -> Expression:
    match node:
        case exp.Is():
            return _is(node, scope)
        case exp.Between():
            return _between(node, scope)
        case exp.In():
            return _in(node, scope)
        case exp.Like():
            return _like(node, scope)
        case exp.Star():
            raise scope.text.error(span_of(node), "'*' can only stand in count(*)")
    raise not_yet(scope.text, node, _LATER.get(type(node), "this expression"))


def _is(node: exp.Is, scope: Scope) -> Expression:
    if isinstance(node.expression, exp.Null):
        return IsNull(resolve_scalar(node.this, scope))
    # x IS TRUE is never NULL: (x IS NOT NULL) AND x.
    operand = resolve_condition(node.this, scope, "IS")
    holds = operand if node.expression.this else Not(operand)
    return Logic("AND", (Not(IsNull(operand)), holds))


def _between(node: exp.Between, scope: Scope) -> Expression:
    operand = (node.this, resolve_scalar(node.this, scope))
    bounds = []
    for operator, key in ((">=", "low"), ("<=", "high")):
        bound = (node.args[key], resolve_scalar(node.args[key], scope))
        bounds.append(_compare(node, operator, operand, bound, scope))
    return Logic("AND", tuple(bounds))


def _in(node: exp.In, scope: Scope) -> Expression:
    if node.args.get("query"):
        raise not_yet(scope.text, node, "IN with a subquery")
    operand = (node.this, resolve_scalar(node.this, scope))
    tests = []
    for item in node.expressions:
        tests.append(_compare(item, "=", operand, (item, resolve_scalar(item, scope)), scope))
    items = [_member(test) for test in tests]
    listed = tuple(item for item in items if item is not None)
    if len(listed) == len(tests):
        return InList(operand[1], listed)
    # Columns and inexact constants among the items: the same test, spelled out.
    return Logic("OR", tuple(tests)) if len(tests) > 1 else tests[0]


def _member(test: Expression) -> Literal | None:
    """The constant of `x = constant` in the type of x, None where it has no exact value there."""
    if not isinstance(test, Comparison) or not isinstance(test.right, Literal):
        return None
    wanted, literal = test.left.type, test.right
    if not wanted.numeric or literal.value is None:
        return Literal(literal.value, wanted)
    if not isinstance(literal.value, int | float):
        return None
    value = float(literal.value) if wanted.kind is Kind.DOUBLE else int(literal.value)
    fits = wanted.kind is Kind.DOUBLE or -(2 ** (wanted.bits - 1)) <= value < 2 ** (wanted.bits - 1)
    return Literal(value, wanted) if value == literal.value and fits else None


def _like(node: exp.Like, scope: Scope) -> Expression:
    operand = resolve_scalar(node.this, scope)
    if operand.type.kind is not Kind.STRING:
        fact = f"LIKE needs text, but {render(operand)} is {operand.type}"
        raise scope.text.error(span_of(node.this), fact)
    pattern = resolve_scalar(node.expression, scope)
    if isinstance(pattern, Literal) and isinstance(pattern.value, str) and pattern.type == STRING:
        return Like(operand, pattern.value)
    raise not_yet(scope.text, node.expression, "LIKE with anything but a text constant as its pattern")
