"""CAST(x AS type): which casts there are. What does not fit its new type is NULL (see `runtime.expressions.casts`)."""

from __future__ import annotations

from difflib import get_close_matches

from sqlglot import exp

from penstock.lang.ast import Word, span_of
from penstock.logical.expressions import Cast, Expression, Literal
from penstock.logical.types import TYPE_NAMES, Kind, Type
from penstock.logical.values import constants
from penstock.logical.values.placed import NameScope, Resolve, not_yet
from penstock.logical.values.type_rules import described, is_null

_PLAIN = frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.DOUBLE})
# From text to any of these and back, but DOUBLE is not printed: every engine writes it differently.
_FROM_TEXT = _PLAIN | {Kind.TIMESTAMP}
_TO_TEXT = frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.TIMESTAMP})


def resolve_cast(node: exp.Cast, scope: NameScope, resolve: Resolve) -> Expression:
    target = _target(node.meta["type_name"], scope)
    operand = resolve(node.this, scope)
    if is_null(operand):
        return Cast(Literal(None, target), target)  # no bare NULL any more: it has a type
    if operand.type == target:
        return operand
    if (constant := _constant(node, operand, target, scope)) is not None:
        return constant
    if not _possible(operand.type.kind, target.kind):
        raise _refused(node, operand, target, scope)
    return Cast(operand, target)


def _possible(source: Kind, target: Kind) -> bool:
    if source is Kind.STRING:
        return target in _FROM_TEXT
    if target is Kind.STRING:
        return source in _TO_TEXT
    return source in _PLAIN and target in _PLAIN


def _constant(node: exp.Cast, operand: Expression, target: Type, scope: NameScope) -> Literal | None:
    """Times and addresses written as text are checked now, not turned into NULL later."""
    if not (isinstance(operand, Literal) and isinstance(operand.value, str) and operand.type.kind is Kind.STRING):
        return None
    read = {Kind.TIMESTAMP: constants.timestamp, Kind.INET: constants.address}.get(target.kind)
    try:
        return None if read is None else read(operand.value)
    except constants.BadConstant as problem:
        raise scope.text.error(span_of(node.this), str(problem), problem.hint) from None


def _refused(node: exp.Cast, operand: Expression, target: Type, scope: NameScope) -> Exception:
    kinds = {operand.type.kind, target.kind}
    if kinds & {Kind.INET, Kind.PREFIX} or kinds == {Kind.DOUBLE, Kind.STRING}:
        return not_yet(scope.text, node, f"a cast from {operand.type} to {target}")
    hint = "epoch(x) gives a time as seconds" if operand.type.kind is Kind.TIMESTAMP else ""
    return scope.text.error(span_of(node), f"cannot cast {described(operand)} to {target}", hint)


def _target(word: Word, scope: NameScope) -> Type:
    found = TYPE_NAMES.get(word.text.upper())
    if found is None:
        near = get_close_matches(word.text.upper(), TYPE_NAMES, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}?" if near else f"the types are {', '.join(TYPE_NAMES)}"
        raise scope.text.error(word.span, f"unknown type '{word.text}'", hint)
    return found
