"""Expressions as SQL text: names of unnamed columns, `explain`, and messages.

The text is canonical: lower-case functions, columns as declared, no more parentheses than needed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from penstock.lang.durations import format_duration
from penstock.logical.expressions import (
    ITEM,
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
    Match,
    Not,
    Prefix,
    RecordNumber,
    Sound,
    Triaged,
    WindowEnd,
)
from penstock.logical.types import Kind

_PLAIN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*\.)?[A-Za-z_][A-Za-z0-9_]*")  # of a join also `A.price`
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOOSENESS = {"OR": 1, "AND": 2, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7}
_TEST = 5  # comparisons and the other tests
_ATOM = 9


def render(expression: Expression) -> str:
    """SQL text of an expression.

    >>> from penstock.logical.types import INT, BIGINT
    >>> a = Column("a", INT)
    >>> render(Comparison(">", Arithmetic("*", Arithmetic("+", a, a, BIGINT), a, BIGINT), Literal(3, INT)))
    '(a + a) * a > 3'
    """
    return _render(expression)[0]


def render_name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _render(expression: Expression) -> tuple[str, int]:
    """Text and how tightly its outermost operator binds."""
    match expression:
        case Column(name):
            return render_name(name), _ATOM
        case Prefix(column, length):
            return f"{render_name(column.name)}/{length}", 7
        case Literal():
            return _constant(expression), _ATOM
        case Aggregate():
            return _aggregate(expression), _ATOM
        case Listed(aggregate, what):
            return _aggregate(aggregate) if what == ITEM else f"{what} of {_aggregate(aggregate)}", _ATOM
        case Triaged(of, what):
            return f"{what} {_within(of, _ATOM)}", 7
        case Bucket():
            return "bucket", _ATOM
        case WindowEnd():
            return "window_end", _ATOM
        case RecordNumber():
            return "#record", _ATOM
        case Sound(names):
            return f"sound({', '.join(names)})", _ATOM
        case Lookup(match, column):
            return (
                f"{render_name(match.table)}.{'#class' if column is None else render_name(column)}[{_match(match)}]",
                _ATOM,
            )
        case Computed(_, inner):
            return _render(inner)
        case Arithmetic(operator, left, right):
            binds = _LOOSENESS[operator]
            return f"{_within(left, binds)} {operator} {_moved_by(expression) or _within(right, binds + 1)}", binds
        case Logic(operator, operands):
            binds = _LOOSENESS[operator]
            return f" {operator} ".join(_within(operand, binds + 1) for operand in operands), binds
        case Not(operand):
            return _negation(operand)
        case Case():
            return _choice(expression), _ATOM
        case Cast(operand, kind):
            return f"CAST({render(operand)} AS {kind})", _ATOM
        case Call(function, arguments):
            return f"{function}({', '.join(render(argument) for argument in arguments)})", _ATOM
        case _:
            return _test(expression, ""), _TEST


def _aggregate(expression: Aggregate) -> str:
    argument = "*" if expression.argument is None else render(expression.argument)
    parts = [f"DISTINCT {argument}" if expression.distinct else argument, *map(render, expression.parameters)]
    test = "" if expression.test is None else f" FILTER (WHERE {render(expression.test)})"
    return f"{expression.function}({', '.join(parts)}){test}"


def _within(expression: Expression, binds: int) -> str:
    text, own = _render(expression)
    return text if own >= binds else f"({text})"


def _moved_by(expression: Arithmetic) -> str:
    """The interval that a time is moved by; nothing for other sums."""
    right = expression.right
    if expression.type.kind is not Kind.TIMESTAMP or not isinstance(right, Literal) or not isinstance(right.value, int):
        return ""
    return f"INTERVAL '{format_duration(right.value)}'"


def _choice(expression: Case) -> str:
    parts = [f"WHEN {render(test)} THEN {render(value)}" for test, value in expression.branches]
    if expression.default is not None:
        parts.append(f"ELSE {render(expression.default)}")
    return f"CASE {' '.join(parts)} END"


def _negation(operand: Expression) -> tuple[str, int]:
    if isinstance(operand, IsNull | InList | Like):
        return _test(operand, "NOT "), _TEST
    return f"NOT {_within(operand, _TEST)}", 3


def _test(expression: Expression, negated: str) -> str:
    match expression:
        case Comparison(operator, left, right):
            return f"{_within(left, _TEST + 1)} {operator} {_within(right, _TEST + 1)}"
        case IsNull(operand):
            return f"{_within(operand, _TEST + 1)} IS {negated}NULL"
        case InList(operand, items):
            listed = ", ".join(_constant(item) for item in items)
            return f"{_within(operand, _TEST + 1)} {negated}IN ({listed})"
        case Like(operand, pattern, escape=escape):
            escaped = f" ESCAPE {_quoted(escape)}" if escape else ""
            return f"{_within(operand, _TEST + 1)} {negated}LIKE {_quoted(pattern)}{escaped}"
    raise TypeError(f"no SQL text for {type(expression).__name__}")


def _constant(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if literal.type.kind is Kind.TIMESTAMP and isinstance(value, int):
        moment = _EPOCH + timedelta(microseconds=value)
        return f"TIMESTAMP '{moment.replace(tzinfo=None).isoformat(sep=' ')}'"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _match(match: Match) -> str:
    """The conditions that find a record's rows in a table; its content is part of what they mean."""
    terms = [f"{render(of)} = {render(column)}" for of, column in match.equals]
    if match.value is not None:
        value = render(match.value)
        terms += [f"{value} {bound.operator} {render(bound.bound)}" for bound in match.bounds]
    terms += [] if match.where is None else [render(match.where)]
    return (
        f"{' AND '.join(terms)}{' longest' if match.longest else ''}{' single' if match.single else ''} @{match.digest}"
    )
