"""Tables against plain Python: the exact leaf, and the direct-mapped front against the tuple-at-a-time reference."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Values
from penstock.kernels.tables import probe
from penstock.kernels.tables import probe as tables
from penstock.logical.expressions import Column
from penstock.logical.types import BIGINT, INT, Kind
from penstock.logical.window import Window
from penstock.relations.component import Tag
from penstock.relations.component import component_of as named
from penstock.relations.layout import Layout, lay_out
from penstock.relations.relation import Choice, Relation
from penstock.runtime.tables.chunk import Chunk, pack_words
from penstock.runtime.tables.leaf import Arrivals, Leaf
from penstock.runtime.tables.table import Branch
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.plan import Table
from support.reference import Entry, run_direct_table

STATES = (State("count", "v"), State("sum", "v"), State("min", "v"), State("max", "v"))
KEYS, VALUE = (Column("a", INT), Column("b", BIGINT)), Column("v", INT)
RELATION = Relation("q", "s", KEYS, Window(60, 60).panes, Choice(None, frozenset("abv")), (VALUE,), STATES)
SHAPE = Shape({"v": Kind.INTEGER}, nullable=frozenset({"v"}))
Column64 = np.ndarray


def make_chunk(rng: np.random.Generator, n: int, wide: bool) -> tuple[Chunk, dict[str, Column64], Layout]:
    top = 1 << 60 if wide else 9
    columns = {
        named("pane:time:60:0"): rng.integers(0, 3, n),
        named("value:a"): rng.integers(-4, 5, n),
        named("null:a"): rng.integers(0, 2, n),
        named("value:b"): rng.integers(-top, top, n) // (top // 4) * (top // 4),
        named("null:b"): np.zeros(n, np.int64),
    }
    spans = {name: (int(c.min()), int(c.max())) for name, c in columns.items()}
    layout = lay_out(spans)
    values = Values(rng.integers(-1000, 1000, n), (rng.random(n) < 0.7).astype(np.uint8))
    return Chunk(pack_words(layout, columns, n), {"v": values}, {}), columns, layout


def expected_groups(columns: dict[str, Column64], values: Values) -> dict[tuple[int, ...], tuple[int, ...]]:
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    counts: dict[tuple[int, ...], int] = defaultdict(int)
    for i in range(len(values.numbers)):
        null = int(columns[named("null:a")][i])
        key = (
            int(columns[named("pane:time:60:0")][i]),
            0 if null else int(columns[named("value:a")][i]),
            null,
            int(columns[named("value:b")][i]),
        )
        counts[key] += 1
        groups[key] += [int(values.numbers[i])] if values.valid[i] else []
    return {key: (count, len(groups[key]), sum(groups[key]), *(extremes(groups[key]))) for key, count in counts.items()}


def extremes(values: list[int]) -> tuple[int, int]:
    return (min(values), max(values)) if values else ((1 << 63) - 1, -(1 << 63))


def groups_of(leaf: Leaf) -> dict[tuple[int, ...], tuple[int, ...]]:
    found = {}
    for piece in leaf.pieces({}):
        keys = zip(
            piece.panes,
            piece.components[named("value:a")],
            piece.components[named("null:a")],
            piece.components[named("value:b")],
            strict=True,
        )
        states = zip(piece.count, *(piece.states[state][0] for state in STATES), strict=True)
        for key, state in zip(keys, states, strict=True):
            assert tuple(map(int, key)) not in found
            found[tuple(map(int, key))] = tuple(map(int, state))
    return found


def filled(leaf: Leaf, arrivals: Arrivals, room: int) -> bool:
    """Let a leaf grow until all is in, or there is no more room."""
    while not leaf.absorb(arrivals):
        if not leaf.grow(room):
            return False
    return True


@pytest.mark.parametrize("seed", range(12))
def test_the_leaf_holds_every_group_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chunk, columns, layout = make_chunk(rng, int(rng.integers(1, 3000)), wide=seed % 2 == 0)
    leaf = Leaf(RELATION, layout, SHAPE, 2)
    rows = np.arange(chunk.words.shape[1], dtype=np.int32)
    assert filled(leaf, leaf.arrivals(chunk, rows), 1 << 30)
    assert groups_of(leaf) == expected_groups(columns, chunk.values["v"])
    assert leaf.probes == len(rows)


def test_rebuilding_keeps_every_group() -> None:
    rng = np.random.default_rng(3)
    chunk, columns, layout = make_chunk(rng, 2000, wide=False)
    leaf = Leaf(RELATION, layout, SHAPE, 2)
    rows = np.arange(2000, dtype=np.int32)
    assert filled(leaf, leaf.arrivals(chunk, rows), 1 << 30)
    before = groups_of(leaf)
    wider = lay_out({name: (-(1 << 63), (1 << 63) - 1) if name.tag is Tag.VALUE else (0, 9) for name in columns})
    leaf.rebuild(wider, replace(SHAPE, wide=frozenset({State("sum", "v")})))
    assert leaf.shape.form(State("sum", "v")).words == 2
    assert groups_of(leaf) == before


def test_a_leaf_without_room_stops_and_goes_on_after_a_restart() -> None:
    rng = np.random.default_rng(4)
    n = 60_000
    columns = {
        named("pane:time:60:0"): np.zeros(n, np.int64),
        named("value:a"): np.arange(n),
        named("null:a"): np.zeros(n, np.int64),
    }
    columns |= {named("value:b"): rng.integers(0, 4, n), named("null:b"): np.zeros(n, np.int64)}
    layout = lay_out({name: (0, int(column.max())) for name, column in columns.items()})
    values = Values(rng.integers(0, 9, n), np.ones(n, np.uint8))
    chunk = Chunk(pack_words(layout, columns, n), {"v": values}, {})
    leaf, rows = Leaf(RELATION, layout, SHAPE, 4), np.arange(n, dtype=np.int32)
    arrivals, done, runs, total = leaf.arrivals(chunk, rows), False, 0, 0
    while not done:
        done = filled(leaf, arrivals, 1 << 18)
        total += sum(len(piece) for piece in leaf.pieces({}))
        leaf.restart()
        runs += 1
    assert runs > 1
    assert total == n


@pytest.mark.parametrize("seed", range(12))
def test_the_front_evicts_exactly_as_tuple_at_a_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chunk, columns, layout = make_chunk(rng, int(rng.integers(1, 2000)), wide=seed % 2 == 0)
    n = chunk.words.shape[1]
    leaf = Leaf(RELATION, layout, SHAPE, 64)
    buckets = int(rng.integers(1, 60))
    front = Branch(Table("front", STREAM, ("q",), buckets), RELATION.parts, RELATION.states)
    front.lay_out(layout, SHAPE)
    everything = np.arange(n, dtype=np.int32)
    keys = leaf.arrivals(chunk, everything).keys
    cut = int(rng.integers(0, n + 1))  # two chunks: residents stay between them
    for rows in (everything[:cut], everything[cut:]):
        front.absorb(chunk, rows)
    evicted = front.taken() if front.waiting else np.empty((0, front.format.width), np.uint64)
    at = [(int(tables.key_hash(keys, i)) >> 32) * buckets >> 32 for i in range(n)]
    value = chunk.values["v"]
    entries = [
        Entry(tuple(int(w) for w in keys[:, i]), _partials(int(value.numbers[i]), bool(value.valid[i])))
        for i in range(n)
    ]
    trace = run_direct_table(entries, at, ("add", "add", "add", "min", "max"))
    assert _entries(leaf, evicted) == list(trace.evictions)
    assert not front.flush(buckets)
    residents = front.taken()
    assert _entries(leaf, residents) == [trace.residents[bucket] for bucket in sorted(trace.residents)]
    assert front.probes == n
    assert (front.evictions, front.flushed) == (len(trace.evictions), len(trace.residents))
    for rows in (evicted, residents):
        partial = front.format.partials(rows, {})
        everything = np.arange(len(rows), dtype=np.int32)
        assert filled(leaf, Arrivals(partial, everything, partial.words, probe.hashed(partial.words)), 1 << 30)
    assert groups_of(leaf) == expected_groups(columns, value)


def _partials(value: int, valid: bool) -> tuple[int, ...]:
    return (1, 1, value, value, value) if valid else (1, 0, 0, (1 << 63) - 1, -(1 << 63))


def _entries(leaf: Leaf, rows: Column64) -> list[Entry]:
    numbers = rows.view(np.int64)
    return [
        Entry(tuple(int(w) for w in row[: leaf.format.words]), tuple(int(s) for s in number[leaf.format.words :]))
        for row, number in zip(rows, numbers, strict=True)
    ]


def test_a_leaf_has_no_more_rows_than_its_index_can_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.runtime.tables.leaf.MOST", 16)
    chunk, _, layout = make_chunk(np.random.default_rng(5), 20_000, wide=True)
    leaf, rows = Leaf(RELATION, layout, SHAPE, 4), np.arange(20_000, dtype=np.int32)
    arrivals = leaf.arrivals(chunk, rows)
    assert not filled(leaf, arrivals, 1 << 40)
    assert arrivals.done < len(rows)
    assert len(leaf.rows) == leaf.count == 16
