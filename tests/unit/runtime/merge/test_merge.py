"""Merging: groups numbered cell by cell, keys packed snugly, codes of many dictionaries joined."""

from __future__ import annotations

import random

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import merge as kernels
from penstock.logical.expressions import Aggregate, Column
from penstock.logical.query import Key, OutputColumn, Query
from penstock.logical.types import BIGINT, INT, STRING
from penstock.logical.window import Window
from penstock.relations.component import null_component, value_component
from penstock.relations.layout import snug
from penstock.relations.relation import relation_of
from penstock.runtime.merge.inputs import Cells, GroupRows, Piece
from penstock.runtime.merge.merge import LEAST_IN_CELL, merge
from penstock.runtime.merge.shares import Share
from penstock.state.segments.groups import Groups, canonical_hashes
from penstock.state.segments.vocabulary import Vocabulary

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
A, S, B = Column("a", INT), Column("s", STRING), Column("b", BIGINT)
QUERY = Query(
    "q", "st", Window(10, 10), None, (Key("a", A), Key("s", S)),
    (OutputColumn("n", Aggregate("count", None, BIGINT)),), None,
    (Aggregate("sum", B, BIGINT), Aggregate("min", S, STRING)), None, (), None,
)  # fmt: skip
RELATION = relation_of(QUERY)
SUM, LEAST_TEXT = State("sum", "b"), State("min", "s")


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_groups_of_cells(seed: int, words: int) -> None:
    """Equal keys of a cell are one group, equal keys of two cells are two; groups come by cell."""
    dice = np.random.default_rng(seed)
    pieces, cells = int(dice.integers(1, 5)), int(dice.choice([1, 3, 40]))
    counts = dice.integers(0, 30, (pieces, cells))
    edges = np.concatenate([[0], np.cumsum(counts.sum(1))])
    starts = np.concatenate([edges[:-1, None], counts], 1).cumsum(1)
    keys = dice.integers(0, 12, (words, int(edges[-1]))).astype(np.uint64) << np.uint64(60)
    index = np.empty(1 << int(2 * counts.sum(0).max()).bit_length(), np.int32)
    groups, at, ends = np.empty_like(keys), np.empty(keys.shape[1], np.int64), np.empty(cells, np.int64)
    runs = np.full(pieces, -1)
    if words == 1:
        count = kernels.group_cells(keys[0], starts, runs, index, groups[0], at, ends)
    else:
        count = kernels.group_cells(keys, starts, runs, index, groups, at, ends)
    cell_of = np.empty(keys.shape[1], np.int64)
    for p in range(pieces):
        for c in range(cells):
            cell_of[starts[p, c] : starts[p, c + 1]] = c
    expected = {(int(c), *map(int, key)) for c, key in zip(cell_of, keys.T, strict=True)}
    assert count == len(expected) == (ends[-1] if cells else 0)
    assert (groups[:, at] == keys).all()
    assert (np.searchsorted(ends, at, "right") == cell_of).all()


@pytest.mark.parametrize("words", [1, 3])
def test_distinct_keys_in_the_order_they_come(words: int) -> None:
    keys = np.random.default_rng(words).integers(0, 3, (words, 200)).astype(np.uint64)
    found, at = kernels.distinct(keys)
    assert (found[:, at] == keys).all()
    assert [tuple(key) for key in found.T.tolist()] == list(dict.fromkeys(tuple(key) for key in keys.T.tolist()))


@pytest.mark.parametrize(("runs", "groups"), [([0, 1], [5, 5, 7, 8]), ([0, 0], [5, 5, 7, 7, 8]), ([-1, 0], [5, 7, 8])])
def test_rows_of_one_run_are_taken_as_they_come(runs: list[int], groups: list[int]) -> None:
    """They differ, so nobody looks; where two runs meet, or one whose rows may be equal, equal keys are one group."""
    keys = np.array([5, 5, 7, 7, 8], np.uint64)
    starts = np.array([[0, 2, 3], [3, 3, 5]])  # cell 0: 5, 5 of piece 0; cell 1: 7 of piece 0, 7 and 8 of piece 1
    found, at, ends = np.empty(5, np.uint64), np.empty(5, np.int64), np.empty(2, np.int64)
    count = kernels.group_cells(keys, starts, np.array(runs), np.empty(16, np.int32), found, at, ends)
    assert found[:count].tolist() == groups
    assert found[at].tolist() == keys.tolist()
    assert ends[-1] == count


@pytest.mark.parametrize("seed", range(8))
def test_snug_fields_hold_their_ranges(seed: int) -> None:
    dice = random.Random(seed)
    ranges = {}
    for name in "abcdefg"[: dice.randint(1, 7)]:
        low, high = sorted(dice.choice([LEAST, GREATEST, 0, dice.randint(-(10**6), 10**6)]) for _ in range(2))
        ranges[name] = low, high
    layout = snug(ranges)
    used = [0] * layout.words
    for name, place in layout.places.items():
        assert place.holds(ranges[name])
        assert not place.bits or not place.holds((ranges[name][0], ranges[name][0] + (1 << place.bits)))
        assert used[place.word] & place.mask << place.shift == 0
        assert place.shift + place.bits <= 64
        used[place.word] |= place.mask << place.shift


def dictionary(strings: list[bytes]) -> Dictionary:
    made = Dictionary()
    start = np.cumsum([0, *map(len, strings)]).astype(np.int64)
    made.intern(start, np.frombuffer(b"".join(strings), np.uint8))
    return made


def random_groups(dice: np.random.Generator, rows: int) -> Groups:
    """Groups of one run with codes of its own: distinct, by window and slot."""
    words = [b"w%d" % n for n in dice.permutation(20)]
    known = dictionary(words)
    keys = dice.permutation(5 * 21 * 2 * 2)[:rows]
    panes, a, s, null = keys % 2, keys // 2 % 5, keys // 10 % 21 - 1, keys // 210
    a = np.where(null, 0, a)
    components = {
        value_component("a"): a, null_component("a"): null,
        value_component("s"): s, null_component("s"): (s < 0).astype(np.int64),
    }  # fmt: skip
    _, first = np.unique(np.stack([panes, *components.values()]), axis=1, return_index=True)
    components = {name: values[first] for name, values in components.items()}
    n = len(first)
    states = {SUM: (dice.integers(-100, 100, n),), LEAST_TEXT: (dice.integers(-1, 20, n),)}
    made = Groups(panes[first], components, {value_component("s"): known}, dice.integers(1, 9, n), states)
    return ordered(made)


def ordered(groups: Groups) -> Groups:
    order = np.lexsort([slots_of(groups), groups.panes])
    return Groups(
        groups.panes[order],
        {name: values[order] for name, values in groups.components.items()},
        groups.dictionaries,
        groups.count[order],
        {state: tuple(word[order] for word in words) for state, words in groups.states.items()},
    )


def slots_of(groups: Groups) -> np.ndarray:
    by_code = {name: groups.dictionaries[name].hashes for name in groups.components if name in groups.dictionaries}
    return (canonical_hashes(groups.components, by_code, len(groups)) >> np.uint64(56)).astype(np.int64) % 2


def cells_of(groups: Groups) -> Cells:
    cells = np.bincount(groups.panes * 2 + slots_of(groups), minlength=4)
    return Cells(np.arange(2), 2, np.concatenate([[0], np.cumsum(cells)]))


def rows_of(groups: Groups) -> dict[tuple[object, ...], tuple[object, ...]]:
    """Key → count, sum, least string."""
    words = groups.dictionaries[value_component("s")]
    text = [words.data[a:b].tobytes() for a, b in zip(words.offsets, words.offsets[1:], strict=False)]
    found: dict[tuple[object, ...], tuple[object, ...]] = {}
    for i in range(len(groups)):
        a, null_a, s, null_s = (int(values[i]) for values in groups.components.values())
        least = int(groups.states[LEAST_TEXT][0][i])
        key = (int(groups.panes[i]), None if null_a else a, None if null_s else text[s])
        assert key not in found
        found[key] = int(groups.count[i]), int(groups.states[SUM][0][i]), text[least] if least >= 0 else None
    return found


def added(parts: list[Groups]) -> dict[tuple[object, ...], tuple[object, ...]]:
    total: dict[tuple[object, ...], tuple[object, ...]] = {}
    for part in parts:
        for key, (n, b, s) in rows_of(part).items():
            old_n, old_b, old_s = total.get(key, (0, 0, None))
            total[key] = old_n + n, old_b + b, min((x for x in (old_s, s) if x is not None), default=None)
    return total


@pytest.mark.parametrize("seed", range(10))
def test_cells_and_passes_change_nothing(seed: int) -> None:
    dice = np.random.default_rng(seed)
    parts = [random_groups(dice, int(dice.integers(1, 300))) for _ in range(int(dice.integers(1, 4)))]
    plain = [Piece(GroupRows(part), part.panes) for part in parts]
    celled = [Piece(GroupRows(part), cells_of(part)) for part in parts]
    expected = added(parts)
    assert rows_of(merge(RELATION, plain)) == expected
    assert rows_of(merge(RELATION, celled)) == expected
    assert rows_of(merge(RELATION, [*plain[:1], *celled[1:]])) == expected
    assert [piece.windows.tolist() for piece in celled] == [part.panes.tolist() for part in parts]
    passes = [rows_of(merge(RELATION, celled, Share(turn, 3))) for turn in range(3)]
    assert sum(map(len, passes)) == len(expected)
    assert {key: row for some in passes for key, row in some.items()} == expected


@pytest.mark.parametrize("seed", range(10, 16))
def test_a_vocabulary_serves_many_merges(seed: int) -> None:
    """Also where a merge has NULLs only and the vocabulary knows strings already."""
    dice, vocabulary = np.random.default_rng(seed), Vocabulary()
    for turn in range(4):
        parts = [random_groups(dice, int(dice.integers(1, 300))) for _ in range(int(dice.integers(1, 4)))]
        if turn % 2:
            parts = [_only(part, part.components[null_component("s")] == 1) for part in parts]
        pieces = [Piece(GroupRows(part), cells_of(part)) for part in parts]
        merged = merge(RELATION, pieces, None, vocabulary)
        assert rows_of(merged) == added(parts)
        used = {int(code) for code in merged.components[value_component("s")] if code >= 0}
        used |= {int(code) for code in merged.states[LEAST_TEXT][0] if code >= 0}
        assert used == set(range(merged.dictionaries[value_component("s")].count))


def _only(groups: Groups, rows: np.ndarray) -> Groups:
    return Groups(
        groups.panes[rows],
        {name: values[rows] for name, values in groups.components.items()},
        groups.dictionaries,
        groups.count[rows],
        {state: tuple(word[rows] for word in words) for state, words in groups.states.items()},
    )


def test_groups_come_by_cell_where_there_are_enough() -> None:
    """Windows ascend, so what is written again needs no new order; a few rows are not worth cells."""
    dice = np.random.default_rng(3)
    parts = [random_groups(dice, 300) for _ in range(2)]
    assert sum(map(len, parts)) > 4 * LEAST_IN_CELL
    merged = merge(RELATION, [Piece(GroupRows(part), cells_of(part)) for part in parts])
    cells = merged.panes * 2 + slots_of(merged)
    assert (np.diff(cells) >= 0).all()


def test_no_rows_are_no_groups() -> None:
    assert len(merge(RELATION, [])) == 0
    empty = random_groups(np.random.default_rng(0), 0)
    assert len(merge(RELATION, [Piece(GroupRows(empty), empty.panes)])) == 0
