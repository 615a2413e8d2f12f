"""Pairs of rows that live at several instants, by both ways, beside a plain loop over instants and pairs."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.runtime.merge.join.living import folding
from penstock.runtime.merge.join.living.folding import (
    Folded,
    FoldedSide,
    Folding,
    TooManyPlaces,
    ValueColumn,
    common_lives,
    fits,
    folded,
    pairs_of,
)
from penstock.runtime.merge.join.living.rows import Lives

Array = np.ndarray
Answer = dict[tuple[int, int, int], list[int]]
FOLDS: dict[int, Callable[[int, int], int]] = {0: lambda a, b: a + b, -1: min, 1: max}


def random_side(rng: random.Random, instants: int, keys: int, name: str) -> FoldedSide:
    """Rows with any lives, some keys that the other side may not have, and columns of all kinds."""
    spans = sorted({tuple(sorted(rng.choices(range(instants), k=2))) for _ in range(rng.randint(1, 5))})
    rows, many = rng.randint(1, 60), rng.randint(1, 4)
    signs = sorted(rng.choices((0, -1, 1), k=rng.randint(0, 4)), key=(0, -1, 1).index)
    draw = np.random.default_rng(rng.randrange(1 << 30))
    values = [draw.integers(1, 4, rows), *(draw.integers(-50, 50, rows) for _ in signs)]
    return FoldedSide(
        Lives(np.array([born for born, _ in spans]), np.array([last for _, last in spans])),
        draw.integers(0, len(spans), rows),
        draw.integers(0, keys, rows),
        draw.integers(0, many, rows),
        many,
        tuple(ValueColumn(State("any", f"{name}{number}"), sign) for number, sign in enumerate(signs)),
        np.stack(values),
    )


def random_folding(seed: int) -> Folding:
    rng = random.Random(seed)
    instants, keys = rng.randint(1, 6), rng.choice((1, 3, 40, 5000))
    one, other = (random_side(rng, instants, keys, name) for name in "ab")
    return Folding(one, other, keys, instants, pairs_of([one.keys, other.keys], keys))


def expected(made: Folding) -> Answer:
    """By (instant, group of one, group of the other): pairs of records, then the columns of both sides."""
    found: Answer = {}
    one, other = made.one, made.other
    for instant in range(made.instants):
        for i in living(one, instant):
            for j in living(other, instant):
                if one.keys[i] == other.keys[j]:
                    fold(found, (instant, int(one.codes[i]), int(other.codes[j])), pair(made, i, j), made)
    return found


def living(side: FoldedSide, instant: int) -> list[int]:
    return [i for i, of in enumerate(side.of) if side.lives.born[of] <= instant <= side.lives.last[of]]


def pair(made: Folding, i: int, j: int) -> list[int]:
    one, other = made.one.values[:, i].tolist(), made.other.values[:, j].tolist()
    signs = [column.sign for column in made.one.columns], [column.sign for column in made.other.columns]
    mine = [value * other[0] if not sign else value for value, sign in zip(one[1:], signs[0], strict=True)]
    theirs = [value * one[0] if not sign else value for value, sign in zip(other[1:], signs[1], strict=True)]
    return [one[0] * other[0], *mine, *theirs]


def fold(found: Answer, group: tuple[int, int, int], values: list[int], made: Folding) -> None:
    signs = [0, *(column.sign for side in made.sides for column in side.columns)]
    before = found.get(group)
    found[group] = values if before is None else [FOLDS[s](a, b) for s, a, b in zip(signs, before, values, strict=True)]


def shown(made: Folding, got: Folded) -> Answer:
    """As `expected` has it."""
    states = [column.state for side in made.sides for column in side.columns]
    at = {op.state: number for number, op in enumerate(got.ops)}
    order = [at[None], *(at[state] for state in states)]
    groups = zip(got.instants.tolist(), *(codes.tolist() for codes in got.codes), strict=True)
    return dict(zip(groups, got.values[order].T.tolist(), strict=True))


@pytest.mark.parametrize("way", ["pairs", "cells"])
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_both_ways_equal_a_plain_loop(way: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "CELL_PAIR" if way == "pairs" else "PAIR", 1e12)
    for seed in range(first, first + 50):
        made = random_folding(seed)
        assert fits(made)
        assert shown(made, folded(made)) == expected(made), f"seed {seed}"


def test_lives_have_in_common_what_lies_in_both() -> None:
    one, other = Lives(np.array([0, 2]), np.array([1, 4])), Lives(np.array([0, 1, 3]), np.array([4, 2, 3]))
    both = common_lives(one, other)
    found: dict[tuple[int, int], tuple[int, int] | None] = defaultdict()
    for a in range(2):
        for b in range(3):
            number = both.numbers[a, b]
            alone = number == len(both.common)
            found[a, b] = None if alone else (int(both.common.born[number]), int(both.common.last[number]))
    assert found == {(0, 0): (0, 1), (0, 1): (1, 1), (0, 2): None, (1, 0): (2, 4), (1, 1): (2, 2), (1, 2): (3, 3)}


def test_sums_that_could_overflow_do_not_fit() -> None:
    made = random_folding(3)
    large = np.full_like(made.one.values, 1 << 61)
    assert not fits(replace(made, one=replace(made.one, values=large), pairs=4))


def test_too_many_groups_have_no_place() -> None:
    made = random_folding(3)
    wide = replace(made.one, many=1 << 40)
    with pytest.raises(TooManyPlaces):
        folded(replace(made, one=wide))
