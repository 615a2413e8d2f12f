"""A leaf that appends has a row for everything; merged, its rows are the groups of an exact leaf."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Values
from penstock.logical.expressions import Column
from penstock.logical.types import BIGINT, Kind
from penstock.logical.window import Window
from penstock.relations.component import component_of
from penstock.relations.layout import lay_out
from penstock.relations.relation import APPEND, Choice, Relation
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.merge import merge
from penstock.runtime.tables.append import AppendLeaf, leaf_of
from penstock.runtime.tables.chunk import Chunk, pack_words
from penstock.runtime.tables.leaf import Leaf
from penstock.state.segments.groups import Groups

STATES = (State("count", "v"), State("max", "v"), State("sum", "v"))
EXACTLY = Relation(
    "q", "s", (Column("a", BIGINT),), Window(60, 60).panes, Choice(), (Column("v", BIGINT),), STATES
)  # fmt: skip
APPENDED = replace(EXACTLY, table=APPEND)
PANE, A, NULL = (component_of(text) for text in ("pane:time:60:0", "value:a", "null:a"))
SHAPE = Shape({"v": Kind.INTEGER}, nullable=frozenset({"v"}))


def rows_of(groups: Groups) -> list[tuple[int, ...]]:
    states = [groups.states[state][0].tolist() for state in STATES]
    return sorted(
        zip(groups.panes.tolist(), groups.components[A].tolist(), groups.count.tolist(), *states, strict=True)
    )


def filled(relation: Relation, seed: int, n: int) -> tuple[Leaf, list[Groups]]:
    """A leaf that was given records until it was full, written, and went on."""
    dice, written = np.random.default_rng(seed), []
    columns = {PANE: dice.integers(0, 3, n), A: dice.integers(0, 9, n), NULL: np.zeros(n, np.int64)}
    layout = lay_out({name: (int(c.min()), int(c.max())) for name, c in columns.items()})
    values = Values(dice.integers(-99, 99, n), (dice.random(n) < 0.8).astype(np.uint8))
    leaf = leaf_of(relation, layout, SHAPE, 4)
    arrivals = leaf.arrivals(Chunk(pack_words(layout, columns, n), {"v": values}, {}), np.arange(n, dtype=np.int32))
    while not leaf.absorb(arrivals):
        if not leaf.grow(1 << 14):
            written.append(leaf.groups({}))
            leaf.restart()
    return leaf, [*written, leaf.groups({})]


@pytest.mark.parametrize("seed", range(5))
def test_merged_rows_are_the_groups_of_an_exact_leaf(seed: int) -> None:
    (appending, rows), (_, groups) = filled(APPENDED, seed, 5000), filled(EXACTLY, seed, 5000)
    assert isinstance(appending, AppendLeaf)
    assert sum(map(len, rows)) == 5000
    assert all((part.count == 1).all() for part in rows)
    merged = [
        merge(relation, [Piece(GroupRows(part), part.panes) for part in parts])
        for relation, parts in ((APPENDED, rows), (EXACTLY, groups))
    ]
    assert rows_of(merged[0]) == rows_of(merged[1])
    assert len(merged[0]) == 27


def test_partial_aggregates_keep_their_weights() -> None:
    layout = lay_out({PANE: (0, 0), A: (0, 3), NULL: (0, 0)})
    columns = {PANE: np.zeros(4, np.int64), A: np.array([0, 1, 1, 3]), NULL: np.zeros(4, np.int64)}
    partials = {state: (np.array([5, 6, 7, 8]),) for state in STATES}
    chunk = Chunk(pack_words(layout, columns, 4), {}, {}, np.array([2, 3, 4, 5]), partials)
    leaf = leaf_of(APPENDED, layout, SHAPE, 8)
    assert leaf.absorb(leaf.arrivals(chunk, np.arange(4, dtype=np.int32)))
    assert rows_of(leaf.groups({})) == [(0, 0, 2, 5, 5, 5), (0, 1, 3, 6, 6, 6), (0, 1, 4, 7, 7, 7), (0, 3, 5, 8, 8, 8)]


def test_a_new_layout_loses_no_row() -> None:
    leaf, (before,) = filled(APPENDED, 1, 100)
    wider = lay_out({PANE: (-5, 900), A: (-(1 << 40), 1 << 40), NULL: (0, 1)})
    leaf.rebuild(wider, SHAPE)
    assert rows_of(leaf.groups({})) == rows_of(before)
