"""Scalar functions: which there are, what they take and give.

To add one: an entry in `FUNCTIONS` with its rule, its columns in `runtime.expressions.functions`, its SQL in
`testing.oracle.duck_functions`, and a line in `tests/unit/runtime/expressions/test_functions.py`, which compares the
two on random values.

All are deterministic. NULL in gives NULL out, but for coalesce, CASE, and least and greatest, which skip NULLs;
a result that does not exist (the root of −1, 10 to the 400 as an integer) is NULL too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from penstock.aggregates.registry import AGGREGATES
from penstock.errors import QueryError
from penstock.lang.ast import Word, span_of
from penstock.lang.foreign import window_elsewhere
from penstock.lang.text import AppText
from penstock.logical.expressions import Call, Case, Expression, Literal
from penstock.logical.render import render
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Kind, Type
from penstock.logical.values import constants, type_rules
from penstock.logical.values.placed import NameScope, Resolve
from penstock.logical.values.type_rules import Mismatch, is_null

TIME_PARTS = ("year", "month", "day", "hour", "minute", "second")
TIME_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_EXAMPLES = ("round", "coalesce", "if", "lower", "substr", "hour", "date_trunc")
MOST_DIGITS = 18  # of round: 10 to the 18 is the greatest power of ten in 64 bits

Arguments = list[Expression]
Rule = Callable[[str, Arguments], Expression]


@dataclass(frozen=True)
class ScalarFunction:
    """`usage` is shown where the number of arguments is wrong; `most` None: any number."""

    name: str
    usage: str
    rule: Rule
    least: int = 1
    most: int | None = 1


def resolve_call(node: exp.Anonymous, scope: NameScope, resolve: Resolve) -> Expression:
    word: Word = node.meta["name"]
    function = FUNCTIONS.get(word.text.lower())
    if function is None or ("extract" in node.meta and word.text.lower() not in (*TIME_PARTS, "epoch")):
        told = window_elsewhere(word.text, scope.text.at(span_of(node)))
        if told is not None:
            raise scope.text.error(span_of(node), *told)
        raise _unknown(word, "extract" in node.meta, scope.text)
    if "distinct" in node.meta:
        raise scope.text.error(node.meta["distinct"], "DISTINCT can only stand in an aggregate")
    given = len(node.expressions)
    if given < function.least or (function.most is not None and given > function.most):
        fact = f"{function.name} takes {_count(function)}, not {given}"
        raise scope.text.error(span_of(node), fact, f"write {function.usage}")
    arguments = [resolve(argument, scope) for argument in node.expressions]
    try:
        return function.rule(function.name, arguments)
    except Mismatch as problem:
        at = node if problem.argument is None else node.expressions[problem.argument]
        raise scope.text.error(span_of(at), problem.fact, problem.hint or f"write {function.usage}") from None
    except constants.BadConstant as problem:
        at = next((a for a in node.expressions if isinstance(a, exp.Literal) and a.is_string), node)
        raise scope.text.error(span_of(at), str(problem), problem.hint) from None


def _count(function: ScalarFunction) -> str:
    least, most = function.least, function.most
    if most is None:
        return f"{least} arguments or more" if least > 1 else "one argument or more"
    told = str(least) if least == most else f"{least} to {most}" if most - least > 1 else f"{least} or {most}"
    return "one argument" if told == "1" else f"{told} arguments"


def _unknown(word: Word, extracted: bool, text: AppText) -> QueryError:
    if extracted:
        near = get_close_matches(word.text.lower(), (*TIME_PARTS, "epoch"), n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join((*TIME_PARTS, 'epoch'))}"
        return text.error(word.span, f"unknown part of a time '{word.text}'", hint)
    near = get_close_matches(word.text.lower(), [*FUNCTIONS, *AGGREGATES], n=1, cutoff=0.7)
    listed = f"there are {', '.join(AGGREGATES)}, and functions of one tuple like {', '.join(_EXAMPLES)}"
    return text.error(word.span, f"unknown function '{word.text}'", f"did you mean '{near[0]}'?" if near else listed)


# -- arguments


def _number(name: str, arguments: Arguments, at: int) -> Expression:
    argument = arguments[at]
    if is_null(argument):
        return Literal(None, BIGINT)
    if not argument.type.numeric:
        raise Mismatch(f"{name} needs a number, but {render(argument)} is {argument.type}", argument=at)
    return argument


def _text(name: str, arguments: Arguments, at: int) -> Expression:
    argument = arguments[at]
    if is_null(argument):
        return Literal(None, STRING)
    if argument.type.kind is not Kind.STRING:
        raise Mismatch(f"{name} needs text, but {render(argument)} is {argument.type}", argument=at)
    return argument


def _time(name: str, arguments: Arguments, at: int) -> Expression:
    argument = type_rules.adapt(arguments[at], TIMESTAMP)
    if argument.type.kind is not Kind.TIMESTAMP:
        raise Mismatch(f"{name} needs a TIMESTAMP, but {render(argument)} is {argument.type}", argument=at)
    return argument


def _constant_text(name: str, arguments: Arguments, at: int) -> Literal:
    argument = _text(name, arguments, at)
    if not isinstance(argument, Literal):
        raise Mismatch(f"{name} with anything but a constant here is not executable yet", argument=at)
    return argument


def _constant_whole(name: str, arguments: Arguments, at: int, least: int, most: int) -> Literal:
    argument = arguments[at]
    if not isinstance(argument, Literal):
        raise Mismatch(f"{name} with anything but a constant here is not executable yet", argument=at)
    if not isinstance(argument.value, int) or argument.type.kind is not Kind.INTEGER:
        raise Mismatch(f"{name} needs a whole number here, but {render(argument)} is {argument.type}", argument=at)
    if not least <= argument.value <= most:
        raise Mismatch(f"{name} needs a number from {least} to {most} here", argument=at)
    return argument


# -- rules


def _keeps(name: str, arguments: Arguments) -> Expression:
    """Whole numbers stay whole, as BIGINT."""
    argument = _number(name, arguments, 0)
    return Call(name, (argument,), DOUBLE if argument.type == DOUBLE else BIGINT)


def _whole_part(name: str, arguments: Arguments) -> Expression:
    argument = _number(name, arguments, 0)
    return Call(name, (argument,), DOUBLE) if argument.type == DOUBLE else argument


def _sign(name: str, arguments: Arguments) -> Expression:
    return Call(name, (_number(name, arguments, 0),), INT)


def _round(name: str, arguments: Arguments) -> Expression:
    argument = _number(name, arguments, 0)
    if len(arguments) == 1:
        return Call(name, (argument,), DOUBLE) if argument.type == DOUBLE else argument
    digits = _constant_whole(name, arguments, 1, -MOST_DIGITS, MOST_DIGITS)
    return Call(name, (argument, digits), DOUBLE if argument.type == DOUBLE else BIGINT)


def _real(name: str, arguments: Arguments) -> Expression:
    return Call(name, tuple(_number(name, arguments, at) for at in range(len(arguments))), DOUBLE)


def _mod(name: str, arguments: Arguments) -> Expression:
    return type_rules.calculate("%", _number(name, arguments, 0), _number(name, arguments, 1))


def _choice(name: str, arguments: Arguments) -> Expression:
    values, kind = type_rules.common(arguments, name)
    return Call(name, values, kind)


def _nullif(name: str, arguments: Arguments) -> Expression:
    """NULL where both are equal, else the first."""
    if is_null(arguments[0]):
        raise Mismatch("nullif of NULL has no type", "cast it, like CAST(NULL AS BIGINT)")
    if Kind.PREFIX in (argument.type.kind for argument in arguments):
        raise Mismatch("a prefix in nullif is not executable yet")
    left, right = type_rules.unify(*arguments)
    return Call(name, (left, right), left.type)


def _if(name: str, arguments: Arguments) -> Expression:
    test = type_rules.truth(arguments[0], name)
    (value, default), kind = type_rules.common(arguments[1:], name)
    return Case(((test, value),), default, kind)


def _text_to(result: Type) -> Rule:
    return lambda name, arguments: Call(name, (_text(name, arguments, 0),), result)


def _texts(name: str, arguments: Arguments) -> Expression:
    return Call(name, tuple(_text(name, arguments, at) for at in range(len(arguments))), STRING)


def _substr(name: str, arguments: Arguments) -> Expression:
    limit = 2**31 - 1
    taken: list[Expression] = [_text(name, arguments, 0), _constant_whole(name, arguments, 1, -limit, limit)]
    if taken[1] == Literal(0, INT):
        hint = "characters are counted from 1, or with a negative number from the end"
        raise Mismatch("there is no character 0", hint, argument=1)
    if len(arguments) == 3:
        taken.append(_constant_whole(name, arguments, 2, 0, limit))
    return Call(name, tuple(taken), STRING)


def _text_and_constants(result: Type) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        constant = [_constant_text(name, arguments, at) for at in range(1, len(arguments))]
        return Call(name, (_text(name, arguments, 0), *constant), result)

    return rule


def _part(name: str, arguments: Arguments) -> Expression:
    return Call(name, (_time(name, arguments, 0),), DOUBLE if name == "epoch" else INT)


def _truncated(name: str, arguments: Arguments) -> Expression:
    unit = _constant_text(name, arguments, 0)
    lowered = unit.value.lower() if isinstance(unit.value, str) else ""
    if lowered not in TIME_UNITS:
        near = get_close_matches(lowered, TIME_UNITS, n=1, cutoff=0.6)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(TIME_UNITS)}"
        raise Mismatch(f"{name} knows no unit {render(unit)}", hint, argument=0)
    return Call(name, (Literal(lowered, STRING), _time(name, arguments, 1)), TIMESTAMP)


_TABLE = (
    ScalarFunction("abs", "abs(x)", _keeps),
    ScalarFunction("sign", "sign(x)", _sign),
    ScalarFunction("floor", "floor(x)", _whole_part),
    ScalarFunction("ceil", "ceil(x)", _whole_part),
    ScalarFunction("round", "round(x) or round(x, digits)", _round, most=2),
    ScalarFunction("sqrt", "sqrt(x)", _real),
    ScalarFunction("ln", "ln(x)", _real),
    ScalarFunction("log10", "log10(x)", _real),
    ScalarFunction("exp", "exp(x)", _real),
    ScalarFunction("power", "power(x, y)", _real, 2, 2),
    ScalarFunction("mod", "mod(x, y)", _mod, 2, 2),
    ScalarFunction("least", "least(x, y, ...)", _choice, 1, None),
    ScalarFunction("greatest", "greatest(x, y, ...)", _choice, 1, None),
    ScalarFunction("coalesce", "coalesce(x, y, ...)", _choice, 1, None),
    ScalarFunction("nullif", "nullif(x, y)", _nullif, 2, 2),
    ScalarFunction("if", "if(condition, x, y)", _if, 3, 3),
    ScalarFunction("lower", "lower(text)", _text_to(STRING)),
    ScalarFunction("upper", "upper(text)", _text_to(STRING)),
    ScalarFunction("length", "length(text)", _text_to(BIGINT)),
    ScalarFunction("substr", "substr(text, start) or substr(text, start, length)", _substr, 2, 3),
    ScalarFunction("concat", "concat(text, text, ...)", _texts, 1, None),
    ScalarFunction("trim", "trim(text) or trim(text, 'characters')", _text_and_constants(STRING), 1, 2),
    ScalarFunction("ltrim", "ltrim(text) or ltrim(text, 'characters')", _text_and_constants(STRING), 1, 2),
    ScalarFunction("rtrim", "rtrim(text) or rtrim(text, 'characters')", _text_and_constants(STRING), 1, 2),
    ScalarFunction("replace", "replace(text, 'from', 'to')", _text_and_constants(STRING), 3, 3),
    ScalarFunction("starts_with", "starts_with(text, 'prefix')", _text_and_constants(BOOLEAN), 2, 2),
    *(ScalarFunction(part, f"{part}(time)", _part) for part in (*TIME_PARTS, "epoch")),
    ScalarFunction("date_trunc", "date_trunc('unit', time)", _truncated, 2, 2),
)
_ALIASES = {"ceiling": "ceil", "pow": "power", "iif": "if", "substring": "substr"}
_BY_NAME = {function.name: function for function in _TABLE}
FUNCTIONS: dict[str, ScalarFunction] = _BY_NAME | {alias: _BY_NAME[name] for alias, name in _ALIASES.items()}
