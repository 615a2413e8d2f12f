"""Plans for streams that change, were estimated wrongly, or may not flush for long: what they cost, counted.

Costs are nanoseconds a tuple by fixed unit costs from what tasks counted (`measured`), so nothing here is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import measured
import numpy as np
import pyarrow.parquet as pq
import pytest
from measured import EXTRA, ROW, Fixed, Measured, app_text, clustered, cost_of, joined, resolved, uniform, write, zipf

from penstock.logical.window import Panes
from penstock.runtime.planning.replan import Planner
from penstock.runtime.profile.statistics import Known
from penstock.runtime.profile.turns import every
from penstock.runtime.task.task import Task
from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.collision import rate
from penstock.sharing.model.flow import flows as cost_flows
from penstock.sharing.model.popularity import Popularity, estimated
from penstock.sharing.model.problem import Problem
from penstock.sharing.model.unit_costs import USUAL
from penstock.sharing.options import EACH, NONE, Planning
from penstock.sharing.plan import SharedPlan
from penstock.sharing.planner import plan_stream
from penstock.testing.asserts import assert_same_rows
from penstock.testing.oracle.expected import expect

MEMORY = 256 << 10
BATCH = 30_000  # tuples of a micro-batch and of a window
KEYS = ["ab", "ac", "bc", "bd", "cd", "a", "b", "d", "abc"]
Columns = Mapping[str, np.ndarray]


def flows(seed: int, n: int) -> Columns:
    """Flows of 40 tuples: hot are `a` and `b`."""
    return clustered(np.random.default_rng(seed), n, {"a": 3000, "b": 3000, "c": 20, "d": 20}, 5000, 40)


def spread(seed: int, n: int) -> Columns:
    """Any tuple after any other: hot are `c` and `d`."""
    return uniform(np.random.default_rng(seed), n, {"a": 8, "b": 6, "c": 60, "d": 3000})


@dataclass(frozen=True)
class Flip:
    """A stream of two halves, `half` batches of `batch` tuples each; a window is as long as a batch."""

    before: Callable[[int, int], Columns]
    after: Callable[[int, int], Columns]
    batch: int
    half: int


@pytest.mark.parametrize(
    "flip",
    [
        pytest.param(Flip(flows, spread, 30_000, 8), id="to spread"),
        pytest.param(Flip(spread, flows, 60_000, 20), id="to clustered", marks=pytest.mark.slow),
    ],
)
def test_a_stream_that_flips_is_planned_anew(flip: Flip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within two windows; all after it costs at most 1.2 times the best fixed plan; the output is the oracle's."""
    second = flip.after(2, flip.batch * flip.half)
    write(tmp_path / "whole.parquet", joined(flip.before(1, flip.batch * flip.half), second))
    write(tmp_path / "second.parquet", {name: column[: 3 * flip.batch] for name, column in second.items()})
    text, settings = app_text(tmp_path / "whole.parquet", KEYS, flip.batch), measured.settings(flip.batch)
    whole = measured.run(tmp_path / "whole", text, settings, Planner(Planning(memory=MEMORY, stored=EACH)), monkeypatch)
    assert len(whole.batches) == 2 * flip.half
    used = [batch.version for batch in whole.batches]
    assert used[flip.half] < used[flip.half + 2], used
    assert len(set(used)) <= 5, used
    fixed = fixed_costs(tmp_path, flip, whole.batches[-1].plan, monkeypatch)
    best, cost = min(fixed.values()), cost_of(whole.batches[flip.half :])
    print(f"second half {cost:.1f} ns a tuple, {cost / best:.2f} times the best of {fixed}")
    assert cost <= 1.2 * best
    check_output(whole, text, tmp_path / "whole.parquet")


def fixed_costs(folder: Path, flip: Flip, settled: SharedPlan, patch: pytest.MonkeyPatch) -> dict[str, float]:
    """Costs of plans over a part of the second half alone, each chosen for it."""
    text, settings = app_text(folder / "second.parquet", KEYS, flip.batch), measured.settings(flip.batch)
    app, sources = resolved(text)
    plans = {"settled": {"s": settled}}
    tried = [(NONE, 0), ("auto", MEMORY), ("auto", MEMORY // 8), ("gc", MEMORY), ("gp", MEMORY)]
    for plan, memory in tried:
        planner = Planner(Planning(plan, memory=memory, stored=EACH))
        planner.look(app, sources, settings.batch_rows, settings.parallelism)
        plans[f"{plan} in {memory}"] = planner.plans(app)
    costs = {name: measured.run(folder / name, text, settings, Fixed(plan), patch).cost for name, plan in plans.items()}
    return {name: round(cost, 1) for name, cost in costs.items()}


def check_output(ran: Measured, text: str, path: Path) -> None:
    app, _ = resolved(text)
    expected = expect(app, pq.read_table(path), [batch.rows for batch in ran.batches])
    for name, rows in expected.rows.items():
        found = ran.engine.rows(name)
        assert found is not None
        assert_same_rows(found, rows, f"query {name}")


@dataclass(frozen=True)
class Wrong:
    """Statistics whose groups are wrong by a factor."""

    known: Known
    factor: float

    @property
    def rows(self) -> float:
        return self.known.rows

    def groups(self, grain: Grain) -> float:
        return max(1.0, self.factor * self.known.groups(grain))

    def length(self, grain: Grain, depth: int) -> float:
        return self.known.length(grain, depth)

    def popularity(self, grain: Grain, feeder: Grain | None) -> Popularity:
        counts, groups = self.known.survey.below(grain, feeder, self.known.net), self.groups(grain)
        tuples = self.rows / self.locality(grain) if feeder is None else self.groups(feeder)
        turns = self.turns(grain)
        return estimated(every(counts, turns), max(groups, tuples) / turns, groups / turns)

    def locality(self, grain: Grain) -> float:
        return self.known.locality(grain)

    @property
    def tasks(self) -> int:
        return self.known.tasks

    def moved(self, grain: Grain, panes: Panes) -> float:
        return self.known.moved(grain, panes)

    def turns(self, grain: Grain) -> float:
        return self.known.turns(grain)

    def share(self, grain: Grain) -> float:
        return self.known.share(grain)

    def bits(self, grain: Grain) -> int:
        return self.known.bits(grain)


@pytest.mark.parametrize("kind", [flows, spread], ids=["clustered", "spread"])
def test_wrong_estimates_keep_the_gain(
    kind: Callable[[int, int], Columns], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned with half to one and a half times the groups there are: at least nine tenths of the right plan's gain
    over no sharing, and at most 1.15 times its cost (as much as LRU tables cost more than direct-mapped ones, where
    plans with either promise nearly the same)."""
    write(tmp_path / "in.parquet", kind(3, 3 * BATCH))
    text, settings = app_text(tmp_path / "in.parquet", KEYS, BATCH), measured.settings(BATCH)
    app, sources = resolved(text)
    planner = Planner(Planning(memory=MEMORY, stored=EACH))
    planner.look(app, sources, settings.batch_rows, settings.parallelism)
    known = planner.known["s"]
    right = planner.plans(app)["s"]
    costs, operations = {}, {}
    for factor in (0.5, 0.75, 1.0, 1.25, 1.5, None):
        asked = replace(planner.planning, plan=NONE) if factor is None else planner.planning
        about = Wrong(known, factor or 1.0)
        plan = plan_stream(app.streams[0], right.stored, asked, about, USUAL, MEMORY)
        ran = measured.run(tmp_path / str(factor), text, settings, Fixed({"s": plan}), monkeypatch)
        costs[factor], operations[factor] = ran.cost, sum(batch.operations for batch in ran.batches)
    print({factor: round(cost, 1) for factor, cost in costs.items()}, operations)
    none, best = costs.pop(None), costs[1.0]
    for factor, cost in costs.items():
        assert cost <= 1.15 * best, factor
        assert none - cost >= 0.9 * (none - best), factor
        assert operations[factor] < 0.8 * operations[None], factor


@dataclass
class Flushes:
    """What the ends of tasks cost, by what they counted."""

    costs: list[float] = field(default_factory=list)

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        end = Task.end

        def watched(task: Task) -> None:
            for number, branch in enumerate(task.forest.branches):
                if branch.waiting:  # evicted before the end, and only gathered since
                    task._write_full(task.forest._fall(number, task.columns.dictionaries, task._memory))
            before = _counts(task)
            task._drain()
            self.costs.append(_priced(task, _counts(task) - before))
            end(task)

        patch.setattr(Task, "end", watched)


def _counts(task: Task) -> np.ndarray:
    """Probes of each table, entries that left it, and inserts into each leaf."""
    branches = task.forest.branches
    passed = [branch.evictions + branch.flushed for branch in branches]
    return np.array([*(b.probes for b in branches), *passed, *(leaf.probes for leaf in task.forest.leaves)])


def _priced(task: Task, counts: np.ndarray) -> float:
    branches = task.forest.branches
    memory = sum(branch.table.buckets * branch.format.width * 8 for branch in branches)
    probes = [USUAL.probe_at(memory) + EXTRA + USUAL.word * (b.format.words - 1) for b in branches]
    inserts = [
        USUAL.insert_at(leaf.count * ROW) + EXTRA + USUAL.word * (leaf.format.words - 1) for leaf in task.forest.leaves
    ]
    return float(counts @ np.array([*probes, *(USUAL.passing for _ in branches), *inserts]))


@pytest.mark.parametrize(
    ("kind", "plan"),
    [
        ("flows", "auto"), ("spread", "auto"), ("skewed", "gc"), ("spread", "gp"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("flows", "gc"), ("flows", "gp"), ("skewed", "gp"))),
    ],
)  # fmt: skip
def test_flushes_stay_below_the_peak_load(
    kind: str, plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 3 * BATCH
    sizes = {"a": 400, "b": 300, "c": 20, "d": 2000}
    made = {"flows": flows, "spread": spread, "skewed": lambda seed, n: zipf(np.random.default_rng(seed), n, sizes)}
    write(tmp_path / "in.parquet", made[kind](5, n))
    text, settings = app_text(tmp_path / "in.parquet", KEYS, BATCH), measured.settings(BATCH)
    flushes = Flushes()
    flushes.watch(monkeypatch)
    shares = {}
    for limit in (None, 2e5, 2e4, 1e3):
        flushes.costs.clear()
        planner = Planner(Planning(plan, memory=MEMORY, peak_load=limit, stored=EACH))
        measured.run(tmp_path / str(limit), text, settings, planner, monkeypatch)
        if limit is None:
            unlimited = max(flushes.costs)
        else:
            shares[limit] = round(max(flushes.costs) / limit, 2)
            assert max(flushes.costs) <= limit, f"{kind}, {plan}: {max(flushes.costs)} ns, not {limit}"
    print(f"{kind}, {plan}: unlimited {unlimited:.0f} ns; most of each limit {shares}")


SIZES = {"a": 300, "b": 200, "c": 20, "d": 1500}
STREAMS: dict[str, Callable[[np.random.Generator, int], Columns]] = {
    "uniform": lambda rng, n: uniform(rng, n, SIZES),
    "zipf": lambda rng, n: zipf(rng, n, SIZES),
    "clustered": lambda rng, n: clustered(rng, n, SIZES, 20_000, 10),
}


# Evictions a tuple that the model is wrong by at depth one: at most, and in the mean.
MOST_WRONG = {"uniform": (0.03, 0.01), "zipf": (0.15, 0.06), "clustered": (0.03, 0.01)}


def letters_of(grain: Grain) -> list[str]:
    return sorted(base.removeprefix("value:") for base, _ in grain if base.startswith("value:"))


@dataclass
class Predicted:
    """Evictions a tuple of each table in a batch, and what the model says of them after the batch before."""

    plan: SharedPlan
    data: Columns

    def groups(self, grain: Grain, number: int) -> float:
        part = [self.data[name][number * BATCH : (number + 1) * BATCH] for name in letters_of(grain)]
        return float(len(np.unique(np.stack(part), axis=1).T))

    def pairs(
        self, before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]], number: int
    ) -> Any:
        """(depth, predicted, measured) of each table in batch `number`."""
        basis = self.plan.basis
        assert basis is not None
        nodes, buckets = basis.configuration.nodes, [each.buckets for each in basis.relations]
        tables = [(i, each) for i, each in enumerate(basis.relations) if each.buckets]
        lengths: dict[int, list[float]] = {}
        for i, each in tables:
            counts = before[f"@{each.name}"]
            if counts["evictions"]:
                x = rate(self.groups(nodes[i].grain, number - 1), each.buckets)
                lengths.setdefault(each.depth, []).append(x * counts["probes"] / counts["evictions"])
        problem = Problem(
            tuple(node.grain for node in nodes if node.query), BATCH, MEMORY,
            lambda grain: self.groups(grain, number), lambda grain: 24.0,
            lambda grain, depth: float(np.mean(lengths.get(depth, [1.0]))), lambda grain: 1.0, lambda grain: 1.0,
        )  # fmt: skip
        flowing = cost_flows(basis.configuration, buckets, problem)
        return [(each.depth, flowing[i].evictions, after[f"@{each.name}"]["evictions"] / BATCH) for i, each in tables]


@pytest.mark.parametrize("kind", list(STREAMS))
def test_predicted_evictions_are_those_measured(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model with exact groups and the flow lengths of each depth as measured in the batch before (seed smap, Sec.
    5.3); tables of 4 and 256 KiB in all, evict-always, phantoms among them. Evictions a tuple of the stream are wrong
    by at most 0.03 (zipf 0.15), 0.01 (0.06) in the mean, where the stream feeds a table; deeper, where one flow length
    stands for tables that differ, by at most 0.4 and 0.15 in the mean."""
    monkeypatch.setattr("penstock.sharing.model.kinds.direct.KEEP_BELOW", 0.0)
    data = STREAMS[kind](np.random.default_rng(8), 3 * BATCH)
    write(tmp_path / "in.parquet", data)
    text, settings = app_text(tmp_path / "in.parquet", KEYS, BATCH), measured.settings(BATCH, 1)
    app, sources = resolved(text)
    found: list[tuple[int, float, float]] = []
    for memory in (4 << 10, 256 << 10):
        planner = Planner(Planning("gc", "sl", memory, stored=EACH))
        planner.look(app, sources, BATCH, 1)
        plan = planner.plans(app)["s"]
        ran = measured.run(tmp_path / str(memory), text, settings, Fixed({"s": plan}), monkeypatch)
        predicted = Predicted(plan, data)
        for number in (1, 2):
            found += predicted.pairs(ran.batches[number - 1].tasks[0], ran.batches[number].tasks[0], number)
    for at, (most, mean) in {1: MOST_WRONG[kind], 2: (0.4, 0.15)}.items():
        mine = np.array([(guess, true) for depth, guess, true in found if min(depth, 2) == at])
        errors = np.abs(mine[:, 0] - mine[:, 1])
        print(f"{kind}, depth {at}: {len(mine)} tables, wrong by {errors.max():.3f}, {errors.mean():.3f} in the mean")
        assert errors.max() <= most
        assert errors.mean() <= mean
