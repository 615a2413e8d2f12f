"""Expressions of a join query in two spellings at once: as the app says them, and as DuckDB is asked.

Nothing here comes from the engine's resolver: a term is put together by hand or by a generator, so that a fault of the
resolver shows.  In DuckDB values stand as `columns` says: integers and timestamps BIGINT, addresses as sortable text.
A column is `"alias"."name"` there; what stands for a group (a key, an aggregate) is a column of the table of groups,
called by a digest of its text.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INT, PREFIX, TIMESTAMP, Kind, Type
from penstock.testing.oracle.addresses import code_of_text

SQL_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.TIMESTAMP: "BIGINT",
    Kind.STRING: "VARCHAR",
    Kind.INET: "VARCHAR",
    Kind.PREFIX: "VARCHAR",
}
SPREADS = {"variance": "var_samp", "stddev": "stddev_samp"}


@dataclass(frozen=True)
class Use:
    """A column of a side that a term reads; with a `length`, the prefix of an address."""

    alias: str
    column: str
    length: int | None = None

    @property
    def stored(self) -> str:
        """The column's name in the oracle's table of the side."""
        return self.column if self.length is None else f"{self.column}/{self.length}"


@dataclass(frozen=True)
class Term:
    """`aggregates` are those inside it: then it is said of groups, and else of records or pairs of them."""

    text: str
    sql: str
    type: Type
    uses: frozenset[Use] = frozenset()
    aggregates: tuple[AggregateOf, ...] = ()

    @property
    def sides(self) -> frozenset[str]:
        return frozenset(use.alias for use in self.uses)


@dataclass(frozen=True)
class AggregateOf:
    """`function` is the one that is computed, `text` how the app spells all of it."""

    function: str
    argument: Term | None
    text: str
    distinct: bool = False
    test: Term | None = None

    @property
    def type(self) -> Type:
        if self.function == "count":
            return BIGINT
        assert self.argument is not None
        if self.function in ("min", "max"):
            return self.argument.type
        whole = self.function == "sum" and self.argument.type.kind is Kind.INTEGER
        return BIGINT if whole else DOUBLE

    @property
    def slot(self) -> str:
        return slot(self.text)

    @property
    def term(self) -> Term:
        return Term(self.text, slot(self.text), self.type, frozenset(), (self,))


def slot(text: str) -> str:
    """What a key or an aggregate is called in the table of groups."""
    return f"g_{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:12]}"


def grouped(term: Term, text: str | None = None) -> Term:
    """A key as HAVING, ORDER BY and the select list know it; `text` is its name, if they call it by that."""
    return Term(text or term.text, slot(term.text), term.type, term.uses)


def window_end(text: str) -> Term:
    """A bare time column beside aggregates without GROUP BY."""
    return Term(text, "window_end", TIMESTAMP)


def aggregate(name: str, argument: Term | None = None, *, distinct: bool = False, test: Term | None = None) -> Term:
    """`name` as the app spells it; without an argument `count(*)`."""
    inside = "*" if argument is None else f"{'DISTINCT ' if distinct else ''}{bare(argument)}"
    text = f"{name}({inside})" + (f" FILTER (WHERE {bare(test)})" if test is not None else "")
    lower = name.lower()
    return AggregateOf(SPREADS.get(lower, lower), argument, text, distinct, test).term


def count_side(alias: str) -> Term:
    """COUNT(B.*) is count(*)."""
    return AggregateOf("count", None, f"COUNT({alias}.*)").term


# -- values


def column(alias: str, name: str, kind: Type) -> Term:
    return Term(f"{alias}.{name}", f'"{alias}"."{name}"', kind, frozenset((Use(alias, name),)))


def prefix(alias: str, name: str, length: int) -> Term:
    use = Use(alias, name, length)
    return Term(f"{alias}.{name}/{length}", f'"{alias}"."{use.stored}"', PREFIX, frozenset((use,)))


def number(value: int | float) -> Term:
    """A whole number is INT where it fits."""
    if isinstance(value, float):
        return Term(repr(value), f"CAST('{value!r}' AS DOUBLE)", DOUBLE)
    fits = -(1 << 31) <= value < 1 << 31
    return Term(repr(value), f"CAST({value} AS BIGINT)", INT if fits else BIGINT)


def constant(value: str, kind: Type) -> Term:
    """Text, or an address that is written as text."""
    stored = (code_of_text(value) or "") if kind.kind is Kind.INET else value
    return Term(_quoted(value), _quoted(stored), kind)


def moment(text: str, microseconds: int) -> Term:
    return Term(f"TIMESTAMP '{text}'", f"CAST({microseconds} AS BIGINT)", TIMESTAMP)


def truth(value: bool) -> Term:
    return Term(str(value).upper(), str(value).lower(), BOOLEAN)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def bare(term: Term) -> str:
    """The text without the parentheses around all of it."""
    text = term.text
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, mark in enumerate(text):
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1] if "'" not in text else text


# -- operators


def made(text: str, sql: str, kind: Type, *parts: Term) -> Term:
    """A term of others."""
    uses: frozenset[Use] = frozenset().union(*(part.uses for part in parts))
    aggregates = tuple(dict.fromkeys(one for part in parts for one in part.aggregates))
    return Term(text, sql, kind, uses, aggregates)


def arithmetic(operator: str, left: Term, right: Term) -> Term:
    """Integers are wide inside; what does not fit BIGINT at the end of a step is NULL, and so is n / 0."""
    real = operator == "/" or Kind.DOUBLE in (left.type.kind, right.type.kind)
    inner, outer = ("DOUBLE", "DOUBLE") if real else ("HUGEINT", "BIGINT")
    a, b = (f"CAST({side.sql} AS {inner})" for side in (left, right))
    sql = f"TRY_CAST({a} {operator} {b} AS {outer})"
    if operator in "/%":
        sql = f"(CASE WHEN {b} = 0 THEN NULL ELSE {sql} END)"
    return made(f"({left.text} {operator} {right.text})", sql, DOUBLE if real else BIGINT, left, right)


def compare(operator: str, left: Term, right: Term) -> Term:
    """In the common type."""
    a, b = alike(left, right)
    return made(f"{left.text} {operator} {right.text}", f"({a} {operator} {b})", BOOLEAN, left, right)


def alike(left: Term, right: Term) -> tuple[str, str]:
    """As DuckDB compares them: an integer beside a double is a double."""
    a, b = left.sql, right.sql
    if {left.type.kind, right.type.kind} == {Kind.INTEGER, Kind.DOUBLE}:
        return f"CAST({a} AS DOUBLE)", f"CAST({b} AS DOUBLE)"
    return a, b


def both(*terms: Term) -> Term:
    return _logic("AND", terms)


def either(*terms: Term) -> Term:
    return _logic("OR", terms)


def _logic(word: str, terms: tuple[Term, ...]) -> Term:
    text = "(" + f" {word} ".join(f"({bare(term)})" for term in terms) + ")"
    return made(text, "(" + f" {word} ".join(term.sql for term in terms) + ")", BOOLEAN, *terms)


def negation(term: Term) -> Term:
    return made(f"NOT ({bare(term)})", f"(NOT {term.sql})", BOOLEAN, term)


def is_null(term: Term, wanted: bool = True) -> Term:
    words = "IS NULL" if wanted else "IS NOT NULL"
    return made(f"{term.text} {words}", f"({term.sql} {words})", BOOLEAN, term)


def not_true(term: Term) -> Term:
    return made(f"({bare(term)}) IS NOT TRUE", f"({term.sql} IS NOT TRUE)", BOOLEAN, term)


def one_of(term: Term, items: tuple[Term, ...]) -> Term:
    text = f"{term.text} IN ({', '.join(item.text for item in items)})"
    return made(text, "(" + " OR ".join(compare("=", term, item).sql for item in items) + ")", BOOLEAN, term, *items)


def between(term: Term, low: Term, high: Term) -> Term:
    sql = f"({compare('>=', term, low).sql} AND {compare('<=', term, high).sql})"
    return made(f"{term.text} BETWEEN {low.text} AND {high.text}", sql, BOOLEAN, term, low, high)


def like(term: Term, pattern: str) -> Term:
    return made(f"{term.text} LIKE {_quoted(pattern)}", f"({term.sql} LIKE {_quoted(pattern)})", BOOLEAN, term)


def choice(test: Term, then: Term, otherwise: Term) -> Term:
    """CASE with two branches of one type."""
    text = f"CASE WHEN {bare(test)} THEN {then.text} ELSE {otherwise.text} END"
    sql = f"(CASE WHEN {test.sql} THEN {then.sql} ELSE {otherwise.sql} END)"
    return made(text, sql, then.type, test, then, otherwise)


def coalesce(term: Term, other: Term) -> Term:
    """Of two terms of one type."""
    sql = f"coalesce({term.sql}, {other.sql})"
    return made(f"coalesce({bare(term)}, {other.text})", sql, term.type, term, other)


def length(term: Term) -> Term:
    return made(f"length({bare(term)})", f"length({term.sql})", BIGINT, term)
