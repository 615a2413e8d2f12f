"""Random expressions of every type as SQL text: what may stand in WHERE, GROUP BY and inside aggregates.

A `Term` knows what may be done with it.  Engines agree to the bit on `exact` terms only, so that nothing else is
grouped by, compared or ordered by; ln, exp and their like may differ in the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network

from penstock.logical.types import Kind
from penstock.testing.apps.random_values import RandomColumn
from penstock.testing.apps.randomness import Dice

NUMERIC = (Kind.INTEGER, Kind.DOUBLE)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
PARTS = ("year", "month", "day", "hour", "minute", "second")
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
PREFIX_LENGTHS = (0, 1, 8, 16, 20, 24, 31, 32, 33, 48, 64, 100, 112, 127, 128)
NETWORKS = ("10.0.1.7", "10.3.0.0", "192.2.0.1", "128.0.0.0", "::1", "::ffff:10.0.1.2", "2001:d18:4::1", "2001:db8::a")
LITERALS = {
    Kind.INTEGER: ("0", "1", "-1", "7", "2.5"),
    Kind.DOUBLE: ("0.0", "1", "-1.5", "1e3"),
    Kind.STRING: ("'a'", "''", "'host-1'", "'é'", "'A'"),
    Kind.BOOLEAN: ("TRUE", "FALSE"),
    Kind.TIMESTAMP: ("TIMESTAMP '2000-02-29 00:00:00'", "TIMESTAMP '1970-01-01 00:00:00'"),
    Kind.INET: ("'10.0.1.7'", "'::1'"),
}


@dataclass(frozen=True)
class RandomTerm:
    """A column or an expression, with the flags of `RandomColumn`; `plain` is a column by its name."""

    text: str
    kind: Kind
    literals: tuple[str, ...]
    exact: bool = True
    tame: bool = False
    summable: bool = False
    small: bool = False
    odd: bool = False
    plain: bool = False

    @property
    def inner(self) -> str:
        """The text as an operand."""
        return self.text if self.plain else f"({self.text})"


def term_of(column: RandomColumn) -> RandomTerm:
    return RandomTerm(
        column.name,
        column.kind,
        column.literals,
        tame=column.tame,
        summable=column.summable,
        small=column.small,
        odd=column.odd,
        plain=True,
    )


def random_term(dice: Dice, terms: Sequence[RandomTerm]) -> RandomTerm:
    """An expression over one of the terms, sometimes over an expression."""
    term = _changed(dice, dice.pick(terms))
    return _changed(dice, term) if term.exact and dice.chance(0.25) else term


def random_exact(dice: Dice, terms: Sequence[RandomTerm]) -> RandomTerm:
    """The same among those that all engines compute alike."""
    term = random_term(dice, [term for term in terms if term.exact])
    return term if term.exact else _case(dice, dice.pick([term for term in terms if term.exact]))


def _changed(dice: Dice, term: RandomTerm) -> RandomTerm:
    makers = {
        Kind.INTEGER: _of_integer,
        Kind.DOUBLE: _of_double,
        Kind.STRING: _of_text,
        Kind.TIMESTAMP: _of_time,
        Kind.BOOLEAN: _of_truth,
        Kind.INET: _of_address,
    }
    general: tuple[Callable[[Dice, RandomTerm], RandomTerm], ...] = (_case, _test, _same_kind, _same_kind)
    return dice.pick(general)(dice, term) if dice.chance(0.3) else makers[term.kind](dice, term)


def _new(text: str, kind: Kind, **flags: bool) -> RandomTerm:
    return RandomTerm(text, kind, LITERALS[kind], **flags)


def _number(text: str, kind: Kind = Kind.INTEGER) -> RandomTerm:
    """A small whole number."""
    return _new(text, kind, tame=True, summable=True, small=kind is Kind.INTEGER)


def _kept(term: RandomTerm, text: str) -> RandomTerm:
    """As well behaved as what it is made of."""
    return replace(term, text=text, plain=False)


def _wilder(term: RandomTerm, text: str) -> RandomTerm:
    """Only small or tame numbers stay summable."""
    fine = term.small if term.kind is Kind.INTEGER else term.tame
    return replace(term, text=text, plain=False, tame=fine, summable=fine)


# -- for every kind


def _literal(dice: Dice, term: RandomTerm) -> str:
    return dice.pick(term.literals or LITERALS[term.kind])


def _test(dice: Dice, term: RandomTerm) -> RandomTerm:
    return _new(f"{term.inner} {dice.pick(COMPARISONS)} {_literal(dice, term)}", Kind.BOOLEAN)


def _case(dice: Dice, term: RandomTerm) -> RandomTerm:
    """Numbers or text by conditions on a term, in both spellings of CASE and as if()."""
    one, two = _literal(dice, term), _literal(dice, term)
    choices = (
        f"CASE WHEN {term.inner} > {one} THEN 2 WHEN {term.inner} IS NULL THEN -1 ELSE 0 END",
        f"CASE WHEN {term.inner} IS NOT NULL AND {term.inner} < {one} THEN 1 END",
        f"CASE {term.inner} WHEN {one} THEN 10 WHEN {two} THEN 20 ELSE 30 END",
        f"if({term.inner} <= {one}, 1, 0)",
    )
    if dice.chance(0.7):
        return _number(dice.pick(choices))
    return _new(f"CASE WHEN {term.inner} >= {one} THEN 'high' ELSE 'low' END", Kind.STRING)


def _same_kind(dice: Dice, term: RandomTerm) -> RandomTerm:
    """Choices among values of one type; computed addresses can only be compared, which tests nothing more."""
    if term.kind is Kind.INET:
        return _case(dice, term)
    literal = _literal(dice, term)
    if term.kind is Kind.INTEGER and not literal.lstrip("-").isdecimal():
        literal = "3"
    choices = [
        f"coalesce({term.text}, {literal})",
        f"nullif({term.text}, {literal})",
        f"CASE WHEN {term.inner} = {literal} THEN NULL ELSE {term.text} END",
    ]
    if term.kind in (*NUMERIC, Kind.STRING, Kind.TIMESTAMP):
        choices += [f"least({term.text}, {literal})", f"greatest({term.text}, {literal})"]
    changed = _kept(term, dice.pick(choices))
    # A literal may be huge: only counting and comparing is safe then.
    return changed if len(literal) < 9 or term.kind not in NUMERIC else replace(changed, tame=False, summable=False)


# -- kind by kind


def _of_integer(dice: Dice, term: RandomTerm) -> RandomTerm:
    number = dice.between(-5, 50)
    match dice.between(0, 8):
        case 0:
            return _wilder(term, f"{term.inner} {dice.pick(('+', '-'))} {abs(number)}")
        case 1:
            return _wilder(term, f"{term.inner} * {dice.between(-3, 5)}")
        case 2 | 3:
            return _number(dice.pick((f"{term.inner} % {number}", f"mod({term.text}, {number})")))
        case 4:
            return _number(f"sign({term.text})")
        case 5:
            return _wilder(term, dice.pick((f"abs({term.text})", f"-{term.inner}")))
        case 6:
            return _new(f"{term.inner} / {number}", Kind.DOUBLE)
        case 7:
            double = _new(f"CAST({term.text} AS DOUBLE)", Kind.DOUBLE, tame=term.small, summable=term.small)
            return dice.pick((double, _new(f"CAST({term.text} AS STRING)", Kind.STRING)))
        case _:
            narrow = dice.pick(("TINYINT", "SMALLINT", "INT"))
            return _number(f"CAST({term.text} AS {narrow})")


def _of_double(dice: Dice, term: RandomTerm) -> RandomTerm:
    number = dice.between(1, 20)
    match dice.between(0, 7):
        case 0:
            return _wilder(term, f"{term.inner} {dice.pick(('+ ', '- '))}{number}")
        case 1:
            return _wilder(term, f"{term.inner} * {dice.pick(('2', '0.5', '-1', '3'))}")
        case 2:
            return replace(_wilder(term, f"{term.inner} / {number - 1}"), tame=False, summable=False)
        case 3 | 4:
            return _wilder(term, f"{dice.pick(('floor', 'ceil', 'round', 'abs', 'sign'))}({term.text})")
        case 5:
            rooted = dice.pick((f"sqrt({term.text})", f"sqrt(abs({term.text}))"))
            return replace(_kept(term, rooted), tame=False, summable=False)
        case 6:
            return replace(_wilder(term, f"CAST({term.text} AS BIGINT)"), kind=Kind.INTEGER)
        case _:
            inexact = ("ln({})", "log10({})", "exp({})", "power({}, 2)", "ln(abs({}) + 1)")
            return replace(
                _kept(term, dice.pick(inexact).format(term.text)), exact=False, tame=False, summable=False, odd=True
            )


def _of_text(dice: Dice, term: RandomTerm) -> RandomTerm:
    start, count = dice.between(1, 4), dice.between(0, 5)
    choices = (
        f"lower({term.text})",
        f"upper({term.text})",
        f"substr({term.text}, {start}, {count})",
        f"substr({term.text}, {start})",
        f"concat({term.text}, '-', {term.text})",
        f"{term.inner} || 'é'",
        f"trim({term.text})",
        f"replace({term.text}, 'a', 'bb')",
    )
    match dice.between(0, 4):
        case 0:
            return _number(f"length({term.text})")
        case 1:
            return _new(f"starts_with({term.text}, {dice.pick(LITERALS[Kind.STRING])})", Kind.BOOLEAN)
        case _:
            return _kept(term, dice.pick(choices))


def _of_time(dice: Dice, term: RandomTerm) -> RandomTerm:
    match dice.between(0, 3):
        case 0:
            return _kept(term, f"date_trunc('{dice.pick(UNITS)}', {term.text})")
        case 1:
            return _new(f"epoch({term.text})", Kind.DOUBLE)
        case _:
            return _number(f"{dice.pick(PARTS)}({term.text})")


def _of_truth(dice: Dice, term: RandomTerm) -> RandomTerm:
    choices = (f"NOT {term.inner}", f"coalesce({term.text}, FALSE)", f"{term.inner} IS NULL")
    return _number(f"if({term.text}, 1, 0)") if dice.chance(0.4) else _kept(term, dice.pick(choices))


def _of_address(dice: Dice, term: RandomTerm) -> RandomTerm:
    literal = _literal(dice, term)
    if term.plain and dice.chance(0.4):
        return _number(f"CASE WHEN {prefix_test(dice, term)} THEN 1 ELSE 0 END")
    choices = (
        _new(f"if({term.inner} < {literal}, 'low', 'high')", Kind.STRING),
        _number(f"CASE WHEN {term.inner} = {literal} THEN 1 ELSE 0 END"),
    )
    return dice.pick(choices)


def prefix_test(dice: Dice, term: RandomTerm) -> str:
    """A condition on the first bits of an address."""
    length = dice.pick(PREFIX_LENGTHS)
    items = [f"'{_network(dice.pick(NETWORKS), length)}'" for _ in range(dice.between(1, 3))]
    if len(items) > 1:
        return f"{term.text}/{length} {dice.pick(('IN', 'NOT IN'))} ({', '.join(items)})"
    return f"{term.text}/{length} {dice.pick(('=', '<>'))} {items[0]}"


def _network(address: str, length: int) -> str:
    parsed = ip_address(address)
    return str(ip_network((parsed, min(length, parsed.max_prefixlen)), strict=False))
