"""Every aggregate function against plain Python, however its records are cut into tables and those are merged.

A new function is tested by a line in `FUNCTIONS`.
"""

from __future__ import annotations

import ipaddress
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from penstock.aggregates import registry
from penstock.aggregates.base import BOUND, Facts, OutOfRange
from penstock.aggregates.count import COUNTED
from penstock.aggregates.details.function import DetailFunction
from penstock.aggregates.registry import ACCUMULATORS, AGGREGATES
from penstock.aggregates.shape import Growth, Shape
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, PREFIX, STRING, TIMESTAMP, Kind, Type
from support.partials import NAME, Column, Part, Records, growing, shape_for, states_for

NUMBERS = (INT, BIGINT, DOUBLE)
EVERYTHING = (*NUMBERS, BOOLEAN, TIMESTAMP, STRING, INET)
GROUPS = 4


def average(values: Sequence[Any]) -> Fraction:
    return sum(map(Fraction, values), Fraction()) / len(values)


def squares(values: Sequence[Any]) -> Fraction:
    mean = average(values)
    return sum(((Fraction(value) - mean) ** 2 for value in values), Fraction())


def total(values: Sequence[Any]) -> Any:
    return sum(map(Fraction, values), Fraction()) if isinstance(values[0], float) else sum(values)


def address_order(value: Any) -> Any:
    """IPv4 before IPv6."""
    return (value.version, int(value)) if hasattr(value, "version") else value


class Expected(NamedTuple):
    """Of the values of a group that are there, `least` or more of them; fewer give `otherwise`."""

    function: str
    types: tuple[Type, ...]
    value: Callable[[list[Any]], Any]
    least: int = 1
    otherwise: Any = None


FUNCTIONS = (
    Expected("count", EVERYTHING, len, 0),
    Expected("sum", NUMBERS, total),
    Expected("avg", NUMBERS, average),
    Expected("min", EVERYTHING, lambda values: min(values, key=address_order)),
    Expected("max", EVERYTHING, lambda values: max(values, key=address_order)),
    Expected("var_samp", NUMBERS, lambda values: squares(values) / (len(values) - 1), 2),
    Expected("var_pop", NUMBERS, lambda values: squares(values) / len(values)),
    Expected("stddev_samp", NUMBERS, lambda values: math.sqrt(squares(values) / (len(values) - 1)), 2),
    Expected("stddev_pop", NUMBERS, lambda values: math.sqrt(squares(values) / len(values))),
)
CASES = [pytest.param(one, kind, id=f"{one.function}-{kind}") for one in FUNCTIONS for kind in one.types]


def some_value(kind: Type, rng: random.Random) -> Any:
    match kind.kind:
        case Kind.BOOLEAN:
            return rng.random() < 0.5
        case Kind.STRING:
            return "".join(rng.choice("abé") for _ in range(rng.randint(0, 3)))
        case Kind.INET:
            bits = rng.choice((32, 128))
            number = (1 << (bits - 1)) + rng.randint(0, 9)
            return (ipaddress.IPv4Address if bits == 32 else ipaddress.IPv6Address)(number)
        case Kind.DOUBLE:
            return rng.choice((rng.gauss(0, 1), rng.gauss(1e9, 1e-3), float(rng.randint(-3, 3))))
    most = 1 << rng.choice((2, kind.bits - 2 if kind.kind is Kind.INTEGER else 52))
    return rng.randint(-most, most)


def some_records(kind: Type, rng: random.Random) -> Records:
    """With NULLs in one case of two; some groups may have none but these, or no record."""
    nulls, groups = rng.choice((0.0, 0.4)), rng.randint(1, GROUPS)
    rows = range(rng.randint(1, 40))
    return [(rng.randrange(groups), None if rng.random() < nulls else some_value(kind, rng)) for _ in rows]


def expected(one: Expected, records: Records) -> list[Any]:
    groups = [[value for group, value in records if group == n and value is not None] for n in range(GROUPS)]
    return [one.value(values) if len(values) >= one.least else one.otherwise for values in groups]


def merged(one: Expected, column: Column, records: Records, rng: random.Random) -> Part:
    """All records in one part, by way of several that are merged in any order, each as narrow as it may be or wider."""
    states, kind = states_for(AGGREGATES[one.function]), column.type
    wide = growing(states, kind.kind)
    must = wide if sum(abs(v) for _, v in records if isinstance(v, int)) >= BOUND else frozenset()
    cuts = sorted(rng.sample(range(len(records) + 1), rng.randint(1, 2)))
    parts = []
    for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True):
        part = Part(column, states, shape_for(kind, records[a:b], must or rng.choice((wide, frozenset()))), GROUPS)
        if a < b:
            part.take(records[a:b], rng)
        parts.append(part)
    while len(parts) > 1:
        first, other = parts.pop(rng.randrange(len(parts))), parts.pop(rng.randrange(len(parts)))
        shape = Shape(
            {NAME: kind.kind}, first.shape.nullable | other.shape.nullable, first.shape.wide | other.shape.wide
        )
        whole = Part(column, states, shape, GROUPS)
        for part in rng.sample((first, other), 2):
            whole.absorb(part, rng)
        parts.append(whole)
    return parts[0]


def check(one: Expected, part: Part, records: Records) -> None:
    """A group without records is none, so its result does not matter."""
    wanted = expected(one, records)
    beyond = [n for n, value in enumerate(wanted) if isinstance(value, int) and not -BOUND <= value < BOUND]
    if beyond:
        with pytest.raises(OutOfRange) as caught:
            part.finish(AGGREGATES[one.function])
        assert caught.value.group == beyond[0]
        return
    found = part.finish(AGGREGATES[one.function])
    for group in {group for group, _ in records}:
        assert same(found[group], wanted[group]), (group, found[group], wanted[group])


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Fraction | float) and found is not None:
        return math.isclose(found, float(wanted), rel_tol=1e-13, abs_tol=1e-15)
    return bool(type(found) is type(wanted) and found == wanted)


@pytest.mark.parametrize(("one", "kind"), CASES)
def test_functions_agree_with_plain_python(one: Expected, kind: Type) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        records = some_records(kind, rng)
        check(one, merged(one, Column(kind), records, rng), records)


@pytest.mark.parametrize(("one", "kind"), CASES)
def test_groups_of_nulls(one: Expected, kind: Type) -> None:
    records: Records = [(n % GROUPS, None) for n in range(9)]
    check(one, merged(one, Column(kind), records, random.Random(1)), records)


@pytest.mark.parametrize(("one", "kind"), CASES)
def test_fresh_states_change_nothing(one: Expected, kind: Type) -> None:
    rng, column, states = random.Random(7), Column(kind), states_for(AGGREGATES[one.function])
    records = [*some_records(kind, rng), (0, None)]
    wide = growing(states, kind.kind)
    part, fresh = (Part(column, states, shape_for(kind, records, wide), GROUPS) for _ in range(2))
    part.take(records, rng)
    before = {state: part.words(state) for state in states}
    part.absorb(fresh, rng)
    for state in states:
        assert all((a == b).all() for a, b in zip(before[state], part.words(state), strict=True))


@pytest.mark.parametrize(("one", "kind"), CASES)
def test_states_that_add_are_added(one: Expected, kind: Type) -> None:
    """As merges do with what is stored."""
    rng, column, states = random.Random(3), Column(kind), states_for(AGGREGATES[one.function])
    records: Records = [(n % GROUPS, None if n % 3 == 0 else 2) for n in range(20)] if kind.numeric else [(0, None)]
    parts = [Part(column, states, shape_for(kind, records), GROUPS) for _ in range(3)]
    parts[0].take(records, rng)
    parts[1].take(records[:7], rng)
    for part in parts[:2]:
        parts[2].absorb(part, rng)
    for state in states:
        if ACCUMULATORS[state.kind].adds(parts[0].shape.form(state).facts):
            assert (parts[0].words(state)[0] + parts[1].words(state)[0] == parts[2].words(state)[0]).all()


@pytest.mark.parametrize(("one", "kind"), CASES)
def test_wide_states_hold_what_narrow_ones_did(one: Expected, kind: Type) -> None:
    rng, column, states = random.Random(5), Column(kind), states_for(AGGREGATES[one.function])
    records = [(group, value if not isinstance(value, int) else int(value) % 99 - 50) for group, value in
               some_records(kind, rng)]  # fmt: skip
    wide = growing(states, kind.kind)
    narrow, broad = (Part(column, states, shape_for(kind, records, some), GROUPS) for some in (frozenset(), wide))
    for part in (narrow, broad):
        part.take(records, random.Random(2))
    for state in wide:
        words = ACCUMULATORS[state.kind].widened(narrow.words(state))
        assert all((a == b).all() for a, b in zip(words, broad.words(state), strict=True))
        most = max((abs(int(number)) for number in narrow.words(state)[0]), default=0)
        values = [value for _, value in records if value is not None]
        assert not values or most <= ACCUMULATORS[state.kind].bound(len(records), min(values), max(values))


@pytest.mark.parametrize("one", [one for one in FUNCTIONS if BIGINT in one.types], ids=lambda one: one.function)
def test_values_at_the_ends_of_bigint(one: Expected) -> None:
    """Narrow states that just fit, merged into wide ones."""
    column, states, rng = Column(BIGINT), states_for(AGGREGATES[one.function]), random.Random(4)
    records: Records = [(0, BOUND - 1), (1, -BOUND), (2, -1), (3, 1 << 62)]
    narrow, whole = (
        Part(column, states, shape_for(BIGINT, records, wide), GROUPS)
        for wide in (frozenset(), growing(states, Kind.INTEGER))
    )
    narrow.take(records, rng)
    whole.absorb(narrow, rng)
    check(one, whole, records)


def test_every_function_is_in_the_table() -> None:
    plain = {function.name for function in registry.FUNCTIONS if not isinstance(function, DetailFunction)}
    assert {one.function for one in FUNCTIONS} == plain  # those of details are in test_details


@pytest.mark.parametrize("one", FUNCTIONS, ids=lambda one: one.function)
def test_functions_take_the_types_that_the_table_says(one: Expected) -> None:
    function = AGGREGATES[one.function]
    assert [kind for kind in EVERYTHING if function.result(kind) is not None] == list(one.types)


def test_names_stand_as_messages_list_them() -> None:
    names = "count, sum, avg, min, max, variance, var_samp, var_pop, stddev, stddev_samp, stddev_pop"
    assert ", ".join(AGGREGATES).startswith(names)
    assert (AGGREGATES["variance"].name, AGGREGATES["stddev"].name) == ("var_samp", "stddev_samp")


def test_kinds_of_states_are_those_that_files_have() -> None:
    assert ACCUMULATORS.keys() >= {"count", "sum", "min", "max", "moments"}
    assert all(one.kind == kind for kind, one in ACCUMULATORS.items())


@pytest.mark.parametrize("kind", [*EVERYTHING, PREFIX], ids=str)
@pytest.mark.parametrize("accumulator", ACCUMULATORS.values(), ids=lambda one: one.kind)
def test_words_only_grow(accumulator: Any, kind: Type) -> None:
    facts = [Facts(kind.kind, nullable, wide) for wide in (False, True) for nullable in (False, True)]
    if not accumulator.grows(kind.kind):
        facts = facts[:2]
    words = [accumulator.words(one) for one in facts]
    assert words == sorted(words)
    assert [len(accumulator.fresh(one)) for one in facts] == words
    assert len({accumulator.floating(one) for one in facts}) == 1


def test_growth_of_a_task() -> None:
    """A first NULL makes counts of a column a state of their own, values that may leave 64 bits make sums wide."""
    summed, least = (AGGREGATES[name].needs[0].state(NAME) for name in ("sum", "min"))
    growth = Growth([COUNTED.state(NAME), summed, least], Shape.of({NAME: BIGINT}))
    column = Column(BIGINT)
    assert (growth.columns, growth.measured) == ([NAME], frozenset())
    shape = growth.shape({NAME: column.read([1 << 61, -5])}, 2)
    assert (shape.nullable, shape.wide) == (frozenset(), frozenset())
    shape = growth.shape({NAME: column.read([None, -(1 << 61)])}, 2)
    assert (shape.nullable, shape.wide) == ({NAME}, {summed})
    assert [shape.form(state).words for state in (COUNTED.state(NAME), summed, least)] == [1, 2, 1]
    assert growth.shape({NAME: column.read([1, 2])}, 2) is shape


def test_measured_columns() -> None:
    states = states_for(AGGREGATES["var_pop"])
    assert Growth(states, Shape.of({NAME: INT})).measured == {NAME}
