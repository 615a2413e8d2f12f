"""Parsed expressions to typed ones, the same for WHERE, GROUP BY, HAVING, ORDER BY and the select list.

What a name or an aggregate means differs between them; a `Scope` (see `scopes.py`) answers that.

    resolve_scalar ─► constants, logic, operators, CASE here; `predicates`, `functions` and `casts` for the rest
"""

from __future__ import annotations

from sqlglot import exp

from penstock.lang.ast import span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import Call, Case, Expression, Literal, Logic, Not
from penstock.logical.types import BOOLEAN, DOUBLE, STRING
from penstock.logical.values import constants, type_rules
from penstock.logical.values.aggregates import is_aggregate
from penstock.logical.values.casts import resolve_cast
from penstock.logical.values.functions import resolve_call
from penstock.logical.values.placed import NameScope, compared, condition, placed
from penstock.logical.values.predicates import resolve_test

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_OPERATORS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


def resolve_scalar(node: exp.Expr, scope: NameScope) -> Expression:
    known = scope.known(node)
    if known is not None:
        return known
    if isinstance(node, exp.Paren):
        return resolve_scalar(node.this, scope)
    if isinstance(node, exp.Column):
        return scope.name(node)
    if (constant := resolve_constant(node, scope.text)) is not None:
        return constant
    if isinstance(node, exp.Anonymous | exp.Filter):
        return _call(node, scope)
    if isinstance(node, exp.Connector | exp.Not):
        return _logic(node, scope)
    if type(node) in _COMPARISONS or type(node) in _OPERATORS:
        return _binary(node, scope)
    return _other(node, scope)


def resolve_condition(node: exp.Expr, scope: NameScope, where: str) -> Expression:
    return condition(node, scope, where, resolve_scalar)


def _other(node: exp.Expr, scope: NameScope) -> Expression:
    match node:
        case exp.Neg():
            return _negative(node, scope)
        case exp.DPipe():
            return _joined(node, scope)
        case exp.Case():
            return _case(node, scope)
        case exp.Cast():
            return resolve_cast(node, scope, resolve_scalar)
        case exp.Interval():
            hint = "write it like ts + INTERVAL '5 minutes'"
            raise scope.text.error(span_of(node), "an interval can only be added to a time or taken from it", hint)
    return resolve_test(node, scope, resolve_scalar)


def _call(node: exp.Anonymous | exp.Filter, scope: NameScope) -> Expression:
    filtered = node.expression if isinstance(node, exp.Filter) else None
    call: exp.Anonymous = node.this if isinstance(node, exp.Filter) else node
    if is_aggregate(call.name) and "extract" not in call.meta:
        return scope.aggregate(call, filtered)
    resolved = resolve_call(call, scope, resolve_scalar)
    if filtered is not None:
        raise scope.text.error(span_of(call), f"FILTER needs an aggregate, and {call.name.lower()} is none")
    return resolved


# -- constants


def resolve_constant(node: exp.Expr, text: AppText) -> Literal | None:
    """The value of a literal node, a negative number included; None for anything else."""
    try:
        literal = _constant(node)
    except constants.BadConstant as problem:
        raise text.error(span_of(node), str(problem), problem.hint) from None
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


def _logic(node: exp.Connector | exp.Not, scope: NameScope) -> Expression:
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
        test = resolve_condition(operand, scope, operator)
        # (a AND b) AND c is a AND b AND c: equal conditions then compare equal, however they were grouped.
        same = isinstance(test, Logic) and test.operator == operator
        resolved.extend(test.operands if isinstance(test, Logic) and same else (test,))
    return Logic(operator, tuple(resolved))


def _binary(node: exp.Expr, scope: NameScope) -> Expression:
    left_node, right_node = node.this, node.args["expression"]
    if isinstance(node, exp.Add | exp.Sub) and (moved := _moved(node, scope)) is not None:
        return moved
    left, right = resolve_scalar(left_node, scope), resolve_scalar(right_node, scope)
    if type(node) in _OPERATORS:
        return placed(node, scope, lambda: type_rules.calculate(_OPERATORS[type(node)], left, right))
    return compared(node, _COMPARISONS[type(node)], (left_node, left), (right_node, right), scope)


def _moved(node: exp.Add | exp.Sub, scope: NameScope) -> Expression | None:
    """A time plus or minus an interval; None for any other sum."""
    left, right = _unwrap(node.this), _unwrap(node.expression)
    if isinstance(left, exp.Interval) and isinstance(node, exp.Add):
        left, right = right, left
    if not isinstance(right, exp.Interval) or isinstance(left, exp.Interval):
        return None
    time, operator = resolve_scalar(left, scope), _OPERATORS[type(node)]
    return placed(node, scope, lambda: type_rules.shift(operator, time, right.meta["microseconds"]))


def _negative(node: exp.Neg, scope: NameScope) -> Expression:
    operand = resolve_scalar(node.this, scope)
    zero = Literal(0.0, operand.type) if operand.type == DOUBLE else constants.integer(0)
    return placed(node, scope, lambda: type_rules.calculate("-", zero, operand))


def _joined(node: exp.DPipe, scope: NameScope) -> Expression:
    """a || b || c is one concat of three."""
    parts: list[Expression] = []
    for side in (node.this, node.expression):
        resolved = resolve_scalar(side, scope)
        if type_rules.is_null(resolved):
            resolved = Literal(None, STRING)
        if resolved.type != STRING:
            fact = f"'||' joins texts, but {type_rules.described(resolved)} is none"
            raise scope.text.error(span_of(side), fact, "cast it: CAST(... AS STRING)")
        same = isinstance(resolved, Call) and resolved.function == "concat"
        parts.extend(resolved.arguments if isinstance(resolved, Call) and same else (resolved,))
    return Call("concat", tuple(parts), STRING)


def _case(node: exp.Case, scope: NameScope) -> Expression:
    """`CASE x WHEN 1 ...` is `CASE WHEN x = 1 ...`."""
    subject = None if node.this is None else (node.this, resolve_scalar(node.this, scope))
    tests: list[Expression] = []
    values: list[Expression] = []
    for branch in node.args["ifs"]:
        if subject is None:
            tests.append(resolve_condition(branch.this, scope, "WHEN"))
        else:
            tests.append(compared(branch, "=", subject, (branch.this, resolve_scalar(branch.this, scope)), scope))
        values.append(resolve_scalar(branch.args["true"], scope))
    default_node = node.args.get("default")
    if default_node is not None:
        values.append(resolve_scalar(default_node, scope))
    values_, kind = placed(node, scope, lambda: type_rules.common(values, "CASE"))
    default = values_[-1] if default_node is not None else None
    return Case(tuple(zip(tests, values_, strict=False)), default, kind)


def _unwrap(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node
