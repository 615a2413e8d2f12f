"""The forest stops at a full leaf, and goes on where it stopped once its groups are out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Values
from penstock.logical.expressions import Column
from penstock.logical.query import Field, Stream
from penstock.logical.types import BIGINT, TIMESTAMP, Kind
from penstock.logical.window import Window
from penstock.relations.component import null_component, pane_component, sieve_component, value_component
from penstock.relations.layout import Layout, lay_out
from penstock.relations.relation import Choice, Relation
from penstock.relations.storing import Stored
from penstock.runtime.tables.chunk import Chunk, pack_words
from penstock.runtime.tables.forest import Forest
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.plan import SharedPlan, Table

N, MEMORY = 30_000, 1 << 18
WINDOW, SUM = Window(60, 60), State("sum", "v")
KEYS = {"by_a": "a", "by_b": "b", "by_both": "ab"}
TABLES = (Table("a.b", STREAM, ("by_a", "by_b"), 512), Table("both", 0, ("by_both",), 64))
Sums = dict[str, Counter[tuple[int, ...]]]


def relation(name: str) -> Relation:
    keys, value = tuple(Column(key, BIGINT) for key in KEYS[name]), Column("v", BIGINT)
    return Relation(name, "s", keys, WINDOW.panes, Choice(None, frozenset("abv")), (value,), (State("count", "v"), SUM))


def packed(numbers: dict[str, np.ndarray]) -> tuple[Layout, Chunk]:
    columns = {pane_component(WINDOW.panes): np.zeros(N, np.int64)}
    columns |= {value_component(name): numbers[name] for name in "ab"}
    flags = [*(null_component(name) for name in "ab"), *(sieve_component(name) for name in KEYS)]
    layout = lay_out({name: (0, int(c.max())) for name, c in columns.items()} | dict.fromkeys(flags, (0, 0)))
    return layout, Chunk(pack_words(layout, columns, N), {"v": Values(numbers["v"], np.empty(0, np.uint8))}, {})


def write(forest: Forest, sums: Sums) -> None:
    for kept, groups in forest.emptied({}):
        keys = [groups.components[value_component(key)].tolist() for key in KEYS[kept.name]]
        for *key, total in zip(*keys, groups.states[SUM][0].tolist(), strict=True):
            sums[kept.name][tuple(key)] += total


@pytest.mark.parametrize("tables", [(), TABLES], ids=["leaves alone", "tables"])
def test_nothing_is_lost_when_leaves_have_no_room(tables: tuple[Table, ...]) -> None:
    rng = np.random.default_rng(5)
    numbers = {"a": np.arange(N), "b": rng.integers(0, 50, N), "v": rng.integers(0, 9, N)}
    stream = Stream("s", (Field("ts", TIMESTAMP),), "", (), "ts")
    plan = SharedPlan(stream, Stored(tuple(relation(name) for name in KEYS), ()), "", tables)
    forest = Forest(plan, {name: name for name in KEYS}, dict.fromkeys(KEYS, 4))
    layout, chunk = packed(numbers)
    forest.lay_out(layout, Shape({"v": Kind.INTEGER}))
    sums: Sums = {name: Counter() for name in KEYS}
    stops = 0
    for work in (forest.take(chunk, dict.fromkeys(KEYS), MEMORY), forest.drain({}, MEMORY)):
        for full in work:
            assert full.count == len(full.rows)
            stops += 1
            write(forest, sums)
    write(forest, sums)
    assert stops > 1
    assert not any(forest.counts().values())
    for name, keys in KEYS.items():
        expected: Counter[tuple[int, ...]] = Counter()
        for *key, value in zip(*(numbers[key].tolist() for key in keys), numbers["v"].tolist(), strict=True):
            expected[tuple(key)] += value
        assert sums[name] == expected
