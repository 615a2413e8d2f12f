"""Tests with words: IS, BETWEEN, IN, LIKE. All become the few expressions that `runtime.expressions.evaluate` knows.

Called by `scalars`, which hands its own recursion over as `resolve`.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import span_of
from penstock.logical.expressions import Call, Comparison, Expression, InList, IsNull, Like, Literal, Logic, Not
from penstock.logical.render import render
from penstock.logical.types import BOOLEAN, STRING, Kind
from penstock.logical.values.placed import NameScope, Resolve, compared, condition, not_yet

_LATER: dict[type[exp.Expr], str] = {
    exp.Subquery: "a subquery in an expression",
    exp.Window: "OVER",
}


def resolve_test(node: exp.Expr, scope: NameScope, resolve: Resolve) -> Expression:
    match node:
        case exp.Is():
            return _is(node, scope, resolve)
        case exp.NullSafeEQ():
            return _same(node, scope, resolve)
        case exp.NullSafeNEQ():
            return Not(_same(node, scope, resolve))
        case exp.Between():
            return _between(node, scope, resolve)
        case exp.In():
            return _in(node, scope, resolve)
        case exp.Like() | exp.ILike():
            return _like(node, None, scope, resolve)
        case exp.Escape():
            return _like(node.this, node.expression, scope, resolve)
        case exp.Star():
            raise scope.text.error(span_of(node), "'*' can only stand in count(*)")
    if isinstance(node, exp.Exists):
        raise elsewhere(node, scope, "EXISTS")
    raise not_yet(scope.text, node, _LATER.get(type(node), "this expression"))


def elsewhere(node: exp.Expr, scope: NameScope, what: str) -> QueryError:
    """EXISTS and IN with a subquery stand in WHERE alone, where `resolve.joins.subqueries` takes them out."""
    fact = f"{what} is executable only in WHERE, alone or with AND"
    hint = "for anything else give it a query of its own, and read that one's results"
    return scope.text.error(span_of(node), fact, hint)


def _is(node: exp.Is, scope: NameScope, resolve: Resolve) -> Expression:
    if isinstance(node.expression, exp.Null):
        return IsNull(resolve(node.this, scope))
    # x IS TRUE is never NULL: (x IS NOT NULL) AND x.
    operand = condition(node.this, scope, "IS", resolve)
    holds = operand if node.expression.this else Not(operand)
    return Logic("AND", (Not(IsNull(operand)), holds))


def _same(node: exp.Expr, scope: NameScope, resolve: Resolve) -> Expression:
    """x IS NOT DISTINCT FROM y: equal, or both NULL."""
    other = node.args["expression"]
    equal = compared(node, "=", (node.this, resolve(node.this, scope)), (other, resolve(other, scope)), scope)
    assert isinstance(equal, Comparison)
    both = Logic("AND", (IsNull(equal.left), IsNull(equal.right)))
    return Call("coalesce", (equal, both), BOOLEAN)


def _between(node: exp.Between, scope: NameScope, resolve: Resolve) -> Expression:
    operand = (node.this, resolve(node.this, scope))
    bounds = []
    for operator, key in ((">=", "low"), ("<=", "high")):
        bound = (node.args[key], resolve(node.args[key], scope))
        bounds.append(compared(node, operator, operand, bound, scope))
    return Logic("AND", tuple(bounds))


def _in(node: exp.In, scope: NameScope, resolve: Resolve) -> Expression:
    if node.args.get("query"):
        raise elsewhere(node, scope, "IN with a subquery")
    operand = (node.this, resolve(node.this, scope))
    tests = [compared(item, "=", operand, (item, resolve(item, scope)), scope) for item in node.expressions]
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


def _like(node: exp.Expr, escape_node: exp.Expr | None, scope: NameScope, resolve: Resolve) -> Expression:
    word = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
    operand = resolve(node.this, scope)
    if operand.type.kind is not Kind.STRING:
        fact = f"{word} needs text, but {render(operand)} is {operand.type}"
        raise scope.text.error(span_of(node.this), fact)
    what = f"{word} with anything but a text constant as its pattern"
    pattern = _text_constant(node.args["expression"], what, scope, resolve)
    escape = "" if escape_node is None else _escape(escape_node, pattern, scope, resolve)
    if word == "LIKE":
        return Like(operand, pattern, escape=escape)
    if escape_node is not None and escape.lower() != escape.upper():
        raise scope.text.error(span_of(escape_node), "the escape character of ILIKE cannot be a letter")
    # Letter by letter, as the function lower does it; 'İ'.lower() would be two characters.
    lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in pattern)
    return Like(Call("lower", (operand,), STRING), lowered, escape=escape)


def _escape(node: exp.Expr, pattern: str, scope: NameScope, resolve: Resolve) -> str:
    escape = _text_constant(node, "ESCAPE with anything but a text constant", scope, resolve)
    if len(escape) != 1:
        raise scope.text.error(span_of(node), "ESCAPE needs one character", "write it like ESCAPE '!'")
    if pattern.replace(escape * 2, "").endswith(escape):
        raise scope.text.error(span_of(node), f"the pattern ends with its escape character '{escape}'")
    return escape


def _text_constant(node: exp.Expr, what: str, scope: NameScope, resolve: Resolve) -> str:
    literal = resolve(node, scope)
    if isinstance(literal, Literal) and isinstance(literal.value, str) and literal.type == STRING:
        return literal.value
    raise not_yet(scope.text, node, what)
