"""Random clauses as SQL text: predicates, aggregates and select-list expressions over a stream's columns.

Only well-conditioned terms are summed (see `random_values`): a sum beyond BIGINT would end the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.logical.types import Kind
from penstock.testing.apps.random_terms import (
    COMPARISONS,
    LITERALS,
    NUMERIC,
    RandomTerm,
    prefix_test,
    random_exact,
    random_term,
)
from penstock.testing.apps.randomness import Dice

PATTERNS = ("%", "a%", "%b", "_", "host-1%", "%.example", "%é%", "", "h_st-%2%", "%x", "\\", "\\%", "a_b", "_%_")
COUNTS = ("0", "1", "1", "2", "3", "40")
SPREADS = ("variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop")


def random_where(dice: Dice, terms: Sequence[RandomTerm], none: float = 0.5) -> str | None:
    """A predicate on records of random depth, or none."""
    usable = [term for term in terms if term.literals and term.exact]
    if not usable or dice.chance(none):
        return None
    found = _logic(dice, dice.pick((0, 0, 1, 1, 2, 3)), lambda: _predicate(dice, usable))
    # Most predicates hold for few records.
    return f"({found}) IS NOT TRUE" if dice.chance(0.4) else found


def random_having(dice: Dice, aggregates: Sequence[RandomTerm], keys: Sequence[RandomTerm]) -> str | None:
    """A predicate on groups, or none."""
    if dice.chance(0.7):
        return None
    return _logic(dice, dice.pick((0, 0, 1, 2)), lambda: _group_predicate(dice, aggregates, keys))


def random_aggregate(dice: Dice, terms: Sequence[RandomTerm], whole: Sequence[RandomTerm]) -> RandomTerm:
    """Of a term or an expression; `whole` are only aggregated as they stand, without FILTER."""
    if whole and dice.chance(0.2):
        return replace(_aggregate(dice, dice.pick(whole)), summable=False, tame=False)
    term = random_term(dice, terms) if dice.chance(0.3) else dice.pick(terms)
    found = _aggregate(dice, term)
    # The language has no computed addresses, and FILTER computes its argument, unless that is needed in detail.
    free = (
        term.kind is not Kind.INET or found.text == "count(*)" or found.text.startswith(("count(DISTINCT", "entropy"))
    )
    filtered = dice.chance(0.15) and free
    condition = random_where(dice, terms, none=0.0) if filtered else None
    return replace(found, text=f"{found.text} FILTER (WHERE {condition})") if condition else found


def _aggregate(dice: Dice, term: RandomTerm) -> RandomTerm:
    choices = [count_of("*"), count_of(term.text)]
    choices += [replace(term, text=f"{function}({term.text})", plain=False) for function in ("min", "max")]
    average = RandomTerm("", Kind.DOUBLE, LITERALS[Kind.DOUBLE], exact=False, odd=True)
    if term.kind in NUMERIC and (term.plain or term.summable) and term.exact:
        choices.append(replace(average, text=f"avg({term.text})"))
    if term.tame or (term.kind is Kind.DOUBLE and term.exact and not term.odd):
        choices += [replace(average, text=f"{dice.pick(SPREADS)}({term.text})")] * 2
    if term.summable and term.exact:
        total = replace(term, text=f"sum({term.text})", plain=False, small=False, exact=term.tame)
        choices += [total] * 3
    return _detailed(dice, term) if dice.chance(0.25) else dice.pick(choices)


def _detailed(dice: Dice, term: RandomTerm) -> RandomTerm:
    """An aggregate that must know the values of a group."""
    real = RandomTerm("", Kind.DOUBLE, LITERALS[Kind.DOUBLE], exact=False, odd=True)
    choices = [count_of(f"DISTINCT {term.text}"), replace(real, text=f"entropy({term.text})")]
    if term.kind in NUMERIC and term.exact:
        share = dice.pick(("0", "0.25", "0.5", "0.9", "0.99", "1"))
        named = dice.pick((f"percentile({term.text}, {share})", f"median({term.text})"))
        choices += [replace(term, text=named, plain=False)] * 2
        accuracy = dice.pick(("", ", 0.1", ", 0.002"))
        choices.append(replace(real, text=f"approx_percentile({term.text}, {share}{accuracy})"))
        if term.plain or term.summable:
            choices.append(replace(real, text=f"avg(DISTINCT {term.text})"))
    if term.summable and term.exact:
        choices.append(replace(term, text=f"sum(DISTINCT {term.text})", plain=False, small=False, exact=term.tame))
    return dice.pick(choices)


def count_of(text: str) -> RandomTerm:
    return RandomTerm(f"count({text})", Kind.INTEGER, COUNTS, tame=True, summable=True, small=True)


def random_output(dice: Dice, aggregates: Sequence[RandomTerm], keys: Sequence[RandomTerm]) -> RandomTerm:
    """An expression over aggregates and keys."""
    counts = [a for a in aggregates if a.text.startswith("count") and "FILTER" not in a.text] or [count_of("*")]
    ratios = [a for a in aggregates if a.text.startswith(("count", "avg", "sum"))] or counts
    count, ratio = dice.pick(counts).text, dice.pick(ratios).text
    number = dice.between(-3, 9)
    whole = (
        f"{count} * {number}",
        f"count(*) % {dice.pick((0, 2, 3, 4))}",
        f"-{count}",
        f"greatest({count}, 3)",
        f"CASE WHEN {count} > 3 THEN 1 ELSE 0 END",
    )
    broken = (f"{ratio} / {count}", f"({count} + 1) / (count(*) - {dice.between(1, 3)})", f"coalesce({ratio}, 0)")
    texts = (f"if({count} > 2, 'many', 'few')", f"CAST({count} AS STRING) || '!'")
    made = (
        RandomTerm(dice.pick(whole), Kind.INTEGER, LITERALS[Kind.INTEGER], small=True),
        RandomTerm(dice.pick(broken), Kind.DOUBLE, LITERALS[Kind.DOUBLE], exact=False, odd=True),
        RandomTerm(dice.pick(texts), Kind.STRING, LITERALS[Kind.STRING]),
        RandomTerm(_added_up(dice, ratios), Kind.DOUBLE, LITERALS[Kind.DOUBLE], exact=False, odd=True),
    )
    # Not of addresses: what is said of their prefixes would have to be grouped by, too.
    plain = [key for key in keys if key.kind is not Kind.INET]
    changed = [random_exact(dice, plain)] if plain and dice.chance(0.4) else []
    return dice.pick((*made, *changed, *changed))


def _added_up(dice: Dice, aggregates: Sequence[RandomTerm]) -> str:
    """Constants times counts, sums and averages: of one, of what is said of one column, of any."""
    chosen = dice.pick(aggregates)
    one, other = chosen.text, dice.pick(aggregates).text
    inside = re.search(r"^(?:sum|avg|count)\((?!DISTINCT|\*)(.*)\)$", one)
    counted = f"count({inside[1]})" if inside and "FILTER" not in one else "count(*)"
    number, share = dice.pick(("8", "-3", "0.125", "0")), dice.pick(("10", "-4", "2.5"))
    return dice.pick(
        (
            f"{one} * {number}",
            f"{one} / {share}",
            f"({number} - {one}) / {share} + 1",
            f"{one} - {counted} * {number}",
            f"({one} + {counted}) * 2 - count(*) / {share}",
            f"{one} + {other}",
        )
    )


def _logic(dice: Dice, depth: int, leaf: Callable[[], str]) -> str:
    if depth == 0:
        return leaf()
    match dice.between(0, 4):
        case 0:
            return f"NOT ({_logic(dice, depth - 1, leaf)})"
        case 1 | 2:
            return " AND ".join(f"({_logic(dice, depth - 1, leaf)})" for _ in range(dice.between(2, 3)))
        case _:
            return " OR ".join(f"({_logic(dice, depth - 1, leaf)})" for _ in range(dice.between(2, 3)))


def _predicate(dice: Dice, terms: Sequence[RandomTerm]) -> str:
    term = dice.pick(terms)
    if dice.chance(0.2):
        term = random_exact(dice, terms)
    text, literal = term.inner, dice.pick(term.literals)
    choices = [f"{text} {dice.pick(COMPARISONS)} {literal}"] * 4
    choices += [f"{text} IS NULL", f"{text} IS NOT NULL", _membership(dice, term)]
    if term.kind is Kind.BOOLEAN:
        choices += [text, f"NOT {text}", f"{text} IS TRUE", f"{text} IS NOT FALSE"]
    else:
        choices.append(f"{text} BETWEEN {literal} AND {dice.pick(term.literals)}")
    if term.kind is Kind.STRING:
        choices += [f"{text} {dice.pick(('LIKE', 'NOT LIKE'))} '{dice.pick(PATTERNS)}'"] * 3
    if term.kind is Kind.INET and term.plain:
        choices += [prefix_test(dice, term)] * 3
    if term.kind in NUMERIC:
        choices += [_calculation(dice, term)] * 2
    alike = [other.text for other in terms if other.kind is term.kind]
    choices += [f"{text} {dice.pick(COMPARISONS)} {dice.pick(alike)}"] if alike else []
    return dice.pick(choices)


def _membership(dice: Dice, term: RandomTerm) -> str:
    items = [dice.pick(term.literals) for _ in range(dice.between(1, 4))]
    if dice.chance(0.2):
        items.append("NULL")
    return f"{term.inner} {dice.pick(('IN', 'NOT IN'))} ({', '.join(items)})"


def _calculation(dice: Dice, term: RandomTerm) -> str:
    number, text = str(dice.between(-5, 50)), term.inner
    left = dice.pick(
        (
            f"{text} + {number}",
            f"{text} - {text}",
            f"{text} * {number}",
            f"{text} / {number}",
            f"{text} % {number}",
            f"{number} / {text}",
            f"({text} + {number}) * 2",
        )
    )
    return f"{left} {dice.pick(COMPARISONS)} {dice.pick(term.literals)}"


def _group_predicate(dice: Dice, aggregates: Sequence[RandomTerm], keys: Sequence[RandomTerm]) -> str:
    if keys and dice.chance(0.3):
        key = dice.pick(keys)
        return f"{key.inner} {dice.pick(COMPARISONS)} {dice.pick(key.literals)}"
    counts = [a.text for a in aggregates if a.text.startswith("count")] or ["count(*)"]
    if dice.chance(0.3):
        return f"{dice.pick([a.text for a in aggregates] or counts)} IS {dice.pick(('', 'NOT '))}NULL"
    return f"{dice.pick(counts)} {dice.pick((*COMPARISONS, '>', '>='))} {dice.pick(COUNTS)}"
