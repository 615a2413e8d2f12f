"""Plans for a stream: sound trees whatever the statistics, and never dearer than no sharing by their own model."""

from __future__ import annotations

import math
import pickle
import random
from dataclasses import dataclass, field

import pytest

from penstock.errors import ConfigError
from penstock.logical.query import QuerySet, Stream
from penstock.logical.resolve.app import resolve_app
from penstock.logical.window import Panes
from penstock.relations.storing import Stored
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.engine_problem import EngineProblem
from penstock.sharing.model.kinds.registry import KINDS
from penstock.sharing.model.popularity import Popularity, fitted
from penstock.sharing.model.unit_costs import USUAL
from penstock.sharing.options import ALLOCATIONS, AUTO, NONE, PLANS, TABLES, Planning
from penstock.sharing.plan import SharedPlan
from penstock.sharing.planner import plan_stream, reprice
from support.alone import alone

TEXT = "CREATE STREAM s (ts TIMESTAMP, a INT, b INT, c INT, src INET, x DOUBLE, v INT) FROM 'parquet:nowhere';"
KEYS = ("a", "b", "c", "src", "src/24", "src/8", "a + b")
WINDOWS = ("60", "20", "7")
AGGREGATES = ("count(*)", "sum(v)", "sum(x)", "min(v)", "avg(x)", "stddev_samp(x)")


@dataclass
class Guessed:
    """Statistics at random by a seed, whatever is asked first; a finer relation has at least as many groups."""

    seed: int
    rows: float
    long: bool = False
    values: dict[tuple[str, int], float] = field(default_factory=dict)

    def _dice(self, *about: object) -> random.Random:
        return random.Random(f"{self.seed} {about}")

    def groups(self, grain: Grain) -> float:
        found = 1.0
        for base, kept in sorted(grain):
            drawn = 1.0 + self._dice(base).choice([0.2, 3, 50, 3000]) * kept / 100
            found *= self.values.get((base, kept), drawn)
        return min(self.rows, found)

    def length(self, grain: Grain, depth: int) -> float:
        return self._dice(depth, sorted(grain)).choice([1.0, 2.0, 40.0]) if self.long else 1.0

    def popularity(self, grain: Grain, feeder: Grain | None) -> Popularity:
        alpha = self._dice("alpha", sorted(grain), feeder and sorted(feeder)).choice([0.0, 0.5, 1.0, 1.3])
        return fitted(self.groups(grain), alpha, self.rows if feeder is None else self.groups(feeder))

    def locality(self, grain: Grain) -> float:
        return self._dice("locality", sorted(grain)).choice([1.0, 1.0, 10.0]) if self.long else 1.0

    @property
    def tasks(self) -> int:
        return 2

    def moved(self, grain: Grain, panes: Panes) -> float:
        return self.tasks * self.turns(grain)

    def turns(self, grain: Grain) -> float:
        return self._dice("turns").choice([1.0, 1.0, 4.0]) if self.long else 1.0

    def share(self, grain: Grain) -> float:
        """More for a phantom than for what it feeds: a product over the bases that choose would be less."""
        chosen = [self._dice(base).choice([0.01, 0.5, 0.9]) for base, _ in sorted(grain) if base.startswith("sieve:")]
        return 1.0 if ("sieve:", 1) in grain else max(chosen, default=1.0)

    def bits(self, grain: Grain) -> int:
        return 20 * len(grain)


DIRECT, LRU = (kind.name for kind in KINDS)


def random_app(rng: random.Random) -> QuerySet:
    texts = [TEXT]
    for i in range(rng.randint(1, 9)):
        keys = ", ".join(rng.sample(KEYS, rng.randint(1, 3)))
        window, where = rng.choice(WINDOWS), rng.choice(("", "", "WHERE v > 3", "WHERE a = 1"))
        kept = ", ".join(f"{what} AS o{n}" for n, what in enumerate(rng.sample(AGGREGATES, 2)))
        texts.append(
            f"CREATE QUERY q{i} AS SELECT {keys}, {kept} FROM s [RANGE '{window} seconds' SLIDE '{window} seconds'] "
            f"{where} GROUP BY {keys};"
        )
    return resolve_app("\n".join(texts), "app.sql", None)


def planned(seed: int, planning: Planning) -> tuple[SharedPlan, Guessed]:
    rng = random.Random(seed)
    app = random_app(rng)
    known = Guessed(seed, rng.choice([100.0, 1e4, 1e6]), rng.random() < 0.5)
    memory = rng.choice([0, 100, 4 << 10, 256 << 10, 64 << 20])
    return plan_stream(app.streams[0], alone(app, "s"), planning, known, USUAL, memory), known


def check(plan: SharedPlan, story: str) -> None:
    """A tree of tables that feeds every query from one place, with room for all of it in its memory."""
    names = [table.name for table in plan.tables]
    assert len(set(names)) == len(names), story
    queries = [name for table in plan.tables for name in table.leaves]
    assert len(set(queries)) == len(queries), story
    assert set(queries) | {r.name for r in plan.unfed} == {r.name for r in plan.relations}, story
    assert len(queries) + len(plan.unfed) == len(plan.relations), story
    for number, table in enumerate(plan.tables):
        assert STREAM <= table.parent < number, story
        assert table.buckets >= 1, story
        assert table.leaves or any(other.parent == number for other in plan.tables), story
    assert plan.basis is not None
    entries = {priced.name: priced.entry for priced in plan.basis.relations}
    taken = sum(table.buckets * entries[table.name] for table in plan.tables)
    assert taken <= plan.basis.memory + 1, story
    assert math.isfinite(plan.basis.cost), story


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_plans_are_sound(start: int) -> None:
    shared = 0
    for seed in range(start, start + 20):
        rng = random.Random(-seed)
        peak = rng.choice([None, None, 1e4])
        alloc = rng.choice([alloc for alloc in ALLOCATIONS if alloc != "es"])
        plan_name = rng.choice([plan for plan in PLANS if plan not in (NONE, "epes")])
        planning = Planning(plan_name, alloc, peak_load=peak, tables=rng.choice(TABLES))
        plan, _ = planned(seed, planning)
        story = f"seed {seed}: {planning} {plan.configuration} {plan.tables}"
        check(plan, story)
        assert pickle.loads(pickle.dumps(plan)) == plan, story
        shared += bool(plan.tables)
    assert shared > 5


@pytest.mark.parametrize("start", range(100, 160, 20))
def test_auto_is_never_dearer_than_none(start: int) -> None:
    """By its own model, and with a gain that is worth it."""
    for seed in range(start, start + 20):
        plan, _ = planned(seed, Planning())
        none, _ = planned(seed, Planning(NONE))
        assert plan.basis is not None
        assert none.basis is not None
        assert plan.basis.cost <= none.basis.cost, f"seed {seed}: {plan.configuration}"
        assert not plan.tables or plan.basis.cost <= 0.95 * none.basis.cost, f"seed {seed}"
        assert none.tables == (), f"seed {seed}"


def test_tables_are_of_the_kind_that_is_asked_for() -> None:
    """With `auto`, both kinds and mixtures of them are tried, and all are told."""
    seen, compared = set(), set()
    for seed in range(100, 160):
        for kind in TABLES:
            for name in (AUTO, "gc", "tree"):
                plan, _ = planned(seed, Planning(name, tables=kind))
                assert plan.basis is not None
                kinds = {table.kind for table in plan.tables}
                wanted = {AUTO: {DIRECT} if name == "gc" else {LRU}}.get(kind, {kind})
                assert kinds <= ({DIRECT, LRU} if kind == name == AUTO else wanted), f"seed {seed}: {plan.tables}"
                assert {priced.kind for priced in plan.basis.relations if priced.buckets} == kinds
                if kind == name == AUTO:
                    seen |= {tuple(sorted(kinds))}
                    compared |= {option.split("-")[0].split(" ")[0] for option, _ in plan.basis.considered}
    assert seen == {(), (DIRECT,), (LRU,), (DIRECT, LRU)}
    assert compared == {NONE, "gc", "tree", "mixed"}


def test_time_limits_what_is_compared() -> None:
    plan, _ = planned(101, Planning(plan_budget=1e-9))
    assert plan.basis is not None
    assert len(plan.basis.considered) == 2  # none, and one that shares
    full, _ = planned(101, Planning())
    assert full.basis is not None
    assert len(full.basis.considered) > 2


def test_a_plan_costs_what_it_promised() -> None:
    """As long as the statistics are the same."""
    for seed in range(200, 215):
        plan, known = planned(seed, Planning())
        assert plan.basis is not None
        if len(plan.basis.considered) > 1 and plan.tables:
            assert reprice(plan, known, USUAL) <= plan.basis.cost * 1.1, f"seed {seed}"


def test_a_limited_flush_is_below_the_limit_by_the_model() -> None:
    for seed in range(300, 320):
        for limit in (1e2, 1e4, 1e6):
            plan, _ = planned(seed, Planning("gc" if seed % 2 else "tree", peak_load=limit))
            assert plan.basis is not None
            assert plan.basis.flushing <= limit * (1 + 1e-9), f"seed {seed}, {limit}"


def one_app(*selects: str) -> tuple[Stream, Stored]:
    text = [f"CREATE QUERY q{i} AS {select};" for i, select in enumerate(selects)]
    app = resolve_app("\n".join([TEXT, *text]), "app.sql", None)
    return app.streams[0], alone(app, "s")


def test_too_many_candidates_for_epes_are_told() -> None:
    windows = [f"[RANGE '{s} seconds' SLIDE '{s} seconds']" for s in (7, 11, 13, 17, 19, 23)]
    stream, kept = one_app(*(f"SELECT a, count(*) AS n FROM s {window} GROUP BY a" for window in windows))
    known = Guessed(1, 1e6)
    known.values = dict.fromkeys([("value:a", 129), *((f"panes:{n}", 1) for n in range(6))], 2.0)
    with pytest.raises(ConfigError, match="too many for epes"):
        plan_stream(stream, kept, Planning("epes"), known, USUAL, 1 << 20)


def test_states_are_counted_as_they_take_room() -> None:
    """The sum of doubles takes two words, moments five; a count of values is count(*)."""
    window = "[RANGE '7 seconds' SLIDE '7 seconds']"
    _, kept = one_app(
        f"SELECT a, sum(v) AS o, count(v) AS p FROM s {window} GROUP BY a",
        f"SELECT a, sum(x) AS o FROM s {window} GROUP BY a",
        f"SELECT a, stddev_samp(x) AS o, max(v) AS p FROM s {window} GROUP BY a",
    )
    from penstock.sharing.graph.lattice import lattice

    task = EngineProblem(kept.relations, lattice(kept.relations), Guessed(1, 1e4), USUAL, 1 << 20)
    assert [task.state_words([reader.closing.relation]) for reader in kept.readers] == [1, 2, 6]
    assert task.state_words([reader.closing.relation for reader in kept.readers]) == 9


def test_queries_of_the_same_groups_are_one_relation() -> None:
    window = "[RANGE '7 seconds' SLIDE '7 seconds']"
    stream, kept = one_app(
        f"SELECT a, b, sum(v) AS o FROM s {window} GROUP BY a, b",
        f"SELECT b, a, min(v) AS o FROM s {window} GROUP BY a, b",
        f"SELECT a, sum(v) AS o FROM s {window} GROUP BY a",
    )
    known = Guessed(1, 1e6)
    known.values = {("value:a", 129): 10.0, ("value:b", 129): 10.0, ("panes:0", 1): 1.0}
    plan = plan_stream(stream, kept, Planning("gc", memory=1 << 16), known, USUAL, 1 << 16)
    check(plan, plan.configuration)
    assert "q0+q1" in plan.configuration
    two = {reader.closing.relation for reader in kept.readers[:2]}
    assert any(set(table.leaves) >= two for table in plan.tables)


def test_auto_goes_beyond_its_memory_where_that_pays() -> None:
    """Only as far as it may, and never to a dearer plan."""
    larger = 0
    for seed in range(12):
        rng = random.Random(seed)
        app, known = random_app(rng), Guessed(seed, 1e6)
        about = app.streams[0], alone(app, "s"), Planning(plan_budget=20.0), known, USUAL, float(1 << 14)
        small, free = plan_stream(*about), plan_stream(*about, most=float(1 << 22))
        assert small.basis is not None
        assert free.basis is not None
        assert small.basis.memory <= 1 << 14, f"seed {seed}"
        assert free.basis.memory <= 1 << 22, f"seed {seed}"
        assert free.basis.cost <= small.basis.cost * 1.0001, f"seed {seed}"
        larger += free.basis.memory > 1 << 14
    assert larger > 2
