"""Random clauses over the columns of several sides: predicates, keys, aggregates, orders; as terms of the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.logical.types import BIGINT, STRING, Kind
from penstock.testing.apps.joins.values import Value, count_value, small_number
from penstock.testing.apps.random_terms import COMPARISONS, PREFIX_LENGTHS
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.joins import terms
from penstock.testing.oracle.joins.terms import Term

NUMERIC = (Kind.INTEGER, Kind.DOUBLE)
PATTERNS = ("%", "a%", "%b", "host-1%", "%.example", "%é%", "", "red", "%e%")
SPREADS = ("variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop")


# -- conditions


def predicate(dice: Dice, values: Sequence[Value]) -> Term | None:
    """Of one side, sometimes of several parts."""
    usable = [value for value in values if value.literals and not value.whole]
    if not usable:
        return None
    if dice.chance(0.75):
        return _condition(dice, dice.pick(usable))
    parts = [_condition(dice, dice.pick(usable)) for _ in range(dice.between(2, 3))]
    found = dice.pick((terms.both, terms.either))(*parts)
    return terms.not_true(found) if dice.chance(0.2) else found


def _condition(dice: Dice, value: Value) -> Term:
    """What holds for few records is mostly turned round."""
    term, literal = value.term, dice.pick(value.literals)
    if value.kind is not Kind.BOOLEAN and dice.chance(0.5):
        found, few = terms.compare(dice.pick(("<", "<=", ">", ">=", "<>")), term, literal), 0.25
    else:
        found, few = _narrow(dice, value), 0.85
    return terms.not_true(found) if dice.chance(few) else found


def _narrow(dice: Dice, value: Value) -> Term:
    term, literal = value.term, dice.pick(value.literals)
    items = tuple(dice.pick(value.literals) for _ in range(dice.between(1, 3)))
    choices = [terms.compare("=", term, literal), terms.is_null(term), terms.one_of(term, items)]
    if value.kind is not Kind.BOOLEAN:
        choices.append(terms.between(term, literal, dice.pick(value.literals)))
    if value.kind is Kind.STRING:
        choices += [terms.like(term, dice.pick(PATTERNS))] * 2
    found = dice.pick(choices)
    return terms.negation(terms.negation(found)) if dice.chance(0.1) else found


def pair_condition(dice: Dice, left: Sequence[Value], right: Sequence[Value]) -> Term | None:
    """Judged on pairs: a comparison of two sides, a calculation, or an alternative."""
    alike = [(a, b) for a in left for b in right if _comparable(a, b)]
    numbers = [(a, b) for a, b in alike if a.kind in NUMERIC and not a.odd and not b.odd]
    if not alike:
        return None
    one, other = dice.pick(alike)
    operator = dice.pick(("<", "<=", "<>", "<>", ">", ">="))
    compared = terms.compare(operator, one.term, other.term)
    match dice.between(0, 3):
        case 0 if numbers:
            a, b = dice.pick(numbers)
            total = terms.arithmetic(dice.pick(("+", "-")), a.term, b.term)
            return terms.compare(dice.pick(("<", ">", "<>")), total, dice.pick(a.literals))
        case 1 if one.literals and other.literals:
            return terms.either(compared, _condition(dice, one), _condition(dice, other))
        case _:
            return compared


def _comparable(a: Value, b: Value) -> bool:
    return not a.whole and not b.whole and (a.kind is b.kind or (a.kind in NUMERIC and b.kind in NUMERIC))


# -- keys


def keys(dice: Dice, values: Sequence[Value], sides: Sequence[Sequence[Value]]) -> list[Value]:
    """Up to three attributes of any sides; sometimes none."""
    usable = [value for value in values if not value.whole]
    found: dict[str, Value] = {}
    for _ in range(dice.pick((0, 1, 1, 1, 2, 2, 3))):
        chosen = _key(dice, dice.pick(usable), sides)
        found[chosen.term.text] = chosen
    return list(found.values())


def _key(dice: Dice, value: Value, sides: Sequence[Sequence[Value]]) -> Value:
    streams = {use.alias for side in sides for one in side for use in one.term.uses}
    (use, *others) = value.term.uses
    if value.kind is Kind.INET and not others and use.alias in streams and dice.chance(0.4):
        return Value(terms.prefix(use.alias, use.column, dice.pick(PREFIX_LENGTHS)), ())
    if dice.chance(0.2):
        return _computed(dice, value)
    if dice.chance(0.12) and len(sides) > 1:
        across = _across(dice, sides)
        return across if across is not None else value
    return value


def _computed(dice: Dice, value: Value) -> Value:
    one = dice.pick(value.literals) if value.literals else None
    if value.kind is Kind.INTEGER:
        return small_number(value, dice.between(2, 9))
    if value.kind is Kind.STRING:
        return Value(terms.length(value.term), (terms.number(3),), summable=True, small=True, tame=True)
    if one is None:
        return value
    test = terms.compare(dice.pick(COMPARISONS), value.term, one)
    words = terms.constant("yes", STRING), terms.constant("no", STRING)
    return Value(terms.choice(test, *words), words)


def _across(dice: Dice, sides: Sequence[Sequence[Value]]) -> Value | None:
    """An expression over two sides."""
    places = dice.rng.permutation(len(sides))[:2]
    left, right = (sides[int(place)] for place in places)
    whole = [[v for v in side if v.kind is Kind.INTEGER and not v.whole] for side in (left, right)]
    if all(whole) and dice.chance(0.6):
        a, b = (small_number(dice.pick(side), dice.between(2, 7)) for side in whole)
        return Value(terms.arithmetic(dice.pick(("+", "*")), a.term, b.term), a.literals, True, True, True)
    alike = [(a, b) for a in left for b in right if _comparable(a, b)]
    if not alike:
        return None
    one, other = dice.pick(alike)
    test = terms.compare(dice.pick(COMPARISONS), one.term, other.term)
    return Value(
        terms.choice(test, terms.number(1), terms.number(0)), (terms.number(0), terms.number(1)), True, True, True
    )


# -- aggregates


def aggregates(
    dice: Dice, values: Sequence[Value], sides: Sequence[Sequence[Value]], streams: Sequence[str]
) -> list[Value]:
    """One to four; the terms stand for groups."""
    found = [_aggregate(dice, values, sides, streams) for _ in range(dice.between(1, 4))]
    return list({one.term.text: one for one in found}.values())


def _aggregate(dice: Dice, values: Sequence[Value], sides: Sequence[Sequence[Value]], streams: Sequence[str]) -> Value:
    if dice.chance(0.2):
        test = predicate(dice, values) if dice.chance(0.2) else None
        return count_value(terms.aggregate(dice.pick(("count", "COUNT")), test=test))
    if dice.chance(0.1):
        return count_value(terms.count_side(dice.pick(streams)))
    value = dice.pick([one for one in values if one.whole] * 2 + list(values))
    if dice.chance(0.15) and len(sides) > 1:
        value = _across(dice, sides) or value
    test = predicate(dice, values) if dice.chance(0.08) and value.kind is not Kind.INET and not value.whole else None
    return _of(dice, value, test)


def _of(dice: Dice, value: Value, test: Term | None) -> Value:
    term = value.term
    choices = [count_value(terms.aggregate("count", term, test=test))]
    choices += [count_value(terms.aggregate("count", term, distinct=True, test=test))]
    choices += [replace(value, term=terms.aggregate(name, term, test=test), column="") for name in ("min", "max")]
    if value.summable:
        total = Value(terms.aggregate("sum", term, test=test), value.literals, odd=value.kind is Kind.DOUBLE)
        choices += [total] * 4
    if value.kind in NUMERIC and (value.summable or value.kind is Kind.INTEGER):
        choices.append(Value(terms.aggregate("avg", term, test=test), (), odd=True))
    if value.tame and not value.odd:
        choices += [Value(terms.aggregate(dice.pick(SPREADS), term, test=test), (), odd=True)]
    return dice.pick(choices)


def having(dice: Dice, groups: Sequence[Value], found: Sequence[Value]) -> Term | None:
    """A predicate on groups: `groups` are keys, `found` aggregates."""
    if dice.chance(0.75):
        return None
    count = count_value(terms.aggregate("count"))
    counts = [one for one in found if one.term.type == BIGINT and one.literals and not one.odd] or [count]
    if groups and dice.chance(0.3):
        usable = [key for key in groups if key.literals]
        if usable:
            return _condition(dice, dice.pick(usable))
    if dice.chance(0.2):
        return terms.is_null(dice.pick([*found, count]).term, wanted=False)
    chosen = dice.pick(counts)
    return terms.compare(dice.pick((">", ">=", "<", "<>")), chosen.term, dice.pick(chosen.literals))
