"""What a query may say of a column: a term with its literals, and what may be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.logical.types import BIGINT, INET, STRING, TYPE_NAMES, Kind, Type
from penstock.testing.apps.random_terms import LITERALS
from penstock.testing.apps.random_values import RandomColumn
from penstock.testing.oracle.joins import terms
from penstock.testing.oracle.joins.terms import Term

MOST_LITERALS = 6
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Drawn:
    """A column of a stream or table, with the flags of `RandomColumn`."""

    name: str
    type: Type
    literals: tuple[Term, ...]
    summable: bool = False
    small: bool = False
    tame: bool = False
    odd: bool = False
    whole: bool = False  # only aggregated as it stands


@dataclass(frozen=True)
class Value:
    """A term over records or pairs. Engines agree to the bit on all of them; `column` is of a plain one."""

    term: Term
    literals: tuple[Term, ...]
    summable: bool = False
    small: bool = False
    tame: bool = False
    odd: bool = False
    whole: bool = False
    column: str = ""

    @property
    def kind(self) -> Kind:
        return self.term.type.kind


def drawn(column: RandomColumn, whole: bool = False) -> Drawn:
    kind = TYPE_NAMES[column.declared]
    literals = tuple(literal(text, column.kind) for text in column.literals or LITERALS[column.kind])
    return Drawn(column.name, kind, literals, column.summable, column.small, column.tame, column.odd, whole)


def drawn_key(name: str, kind: Type, values: Sequence[Any] = ()) -> Drawn:
    """A column of a key: it is counted and compared, also with some of its values."""
    literals = [literal(text, kind.kind) for text in LITERALS[kind.kind]]
    if kind.kind in (Kind.STRING, Kind.INET):
        literals += [terms.constant(one, kind) for one in values[:MOST_LITERALS] if one.isprintable()]
    if kind.kind is Kind.INTEGER:
        literals += [terms.number(one) for one in values[:MOST_LITERALS] if isinstance(one, int)]
    return Drawn(name, kind, tuple(literals))


def value(alias: str, column: Drawn, qualified: bool = True) -> Value:
    term = terms.column(alias, column.name, column.type)
    if not qualified:
        term = replace(term, text=column.name)
    flags = (column.summable, column.small, column.tame, column.odd, column.whole)
    return Value(term, column.literals, *flags, column=column.name)


def literal(text: str, kind: Kind) -> Term:
    """A literal of the language as a term."""
    match kind:
        case Kind.INTEGER | Kind.DOUBLE:
            whole = text.lstrip("-").isdecimal()
            return replace(terms.number(int(text) if whole else float(text)), text=text)
        case Kind.BOOLEAN:
            return terms.truth(text == "TRUE")
        case Kind.TIMESTAMP:
            return _moment(text.removeprefix("TIMESTAMP ").strip("'"))
        case Kind.INET:
            return terms.constant(text.strip("'"), INET)
        case _:
            return terms.constant(text[1:-1].replace("''", "'"), STRING)


def _moment(text: str) -> Term:
    read = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return terms.moment(text, (read - EPOCH) // timedelta(microseconds=1))


def small_number(found: Value, divisor: int) -> Value:
    """A whole number below the divisor of one that may be large; NULL stays NULL."""
    term = terms.arithmetic("%", found.term, terms.number(divisor))
    return Value(term, (terms.number(0), terms.number(1)), summable=True, small=True, tame=True)


def count_value(term: Term) -> Value:
    counts = tuple(terms.number(n) for n in (0, 1, 1, 2, 3, 40))
    return Value(replace(term, type=BIGINT), counts, summable=True)
