"""Plans for aggregate trees, as the experiments compare them: what is known of an epoch, and four ways to plan with it.

    ours      LRU tables by Che's approximation, FPTAS, all of an epoch's cost
    paper     the same by Lemma 6.1: what the paper plans with
    direct    direct-mapped tables by the model of collisions (seed smap, Eq. 13), FPTAS, all of an epoch's cost
    slc       what the paper compares itself with: direct-mapped tables by Eq. 13, space by supernodes (SL of seed smap),
              only what happens during the epoch counts (Sec. VIII-A)

All of them grow their trees by Algorithm 1, as in the paper. Memory is counted in entries, whatever their width, and all
hash operations cost the same (Sec. VIII-A, B).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.lab.tree_streams import Epoch
from penstock.lab.tree_tables import Counted, Direct, Lru, Table, run_tree, together
from penstock.sharing import eviction
from penstock.sharing.aggregate_tree import aggregate_tree
from penstock.sharing.collision import rate, rates
from penstock.sharing.configuration import Configuration
from penstock.sharing.eviction import Che, Curve, Lemma
from penstock.sharing.fptas import fptas
from penstock.sharing.grain import Grain, letters
from penstock.sharing.notation import name_letters
from penstock.sharing.outflow import tree_cost
from penstock.sharing.popularity import estimated, exponent
from penstock.sharing.problem import Problem
from penstock.sharing.tree import Tree, given, plant

EPSILON = 0.05  # Sec. VIII-A
SAMPLE = 1 << 16  # tuples that popularity is read off; numbers of groups are exact
SHRUNK = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.06, 0.03)  # of the memory that a peak load leaves to SLC


@dataclass(frozen=True)
class Colliding(Curve):
    """A direct-mapped table as SLC has it: the end of the epoch, at which its entries leave, costs nothing."""

    groups: float

    @property
    def most(self) -> float:  # type: ignore[override]
        return 64.0 * self.groups

    def response(self, buckets: float, tuples: float) -> tuple[float, float]:
        return 0.0, rate(self.groups, buckets)

    def outs(self, buckets: NDArray[np.float64], tuples: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(rates(self.groups, buckets) * tuples)


class Model(NamedTuple):
    """A curve for a relation below a feeder (empty: the stream), and the table that it is of."""

    curve: Callable[[Epoch, str, str], Curve]
    table: type[Table]


def che(epoch: Epoch, letters: str, feeder: str) -> Curve:
    """By popularity in the node's own input: the feeder's groups once each."""
    tuples = epoch.groups(feeder) if feeder else epoch.rows
    counts = epoch.counts(letters, feeder, SAMPLE)
    return Che(estimated(counts, float(tuples), float(epoch.groups(letters))), float(epoch.rows))


def lemma(epoch: Epoch, letters: str, feeder: str) -> Curve:
    """The paper takes the exponent that the relation has in the stream; Lemma 6.1 goes up to 1."""
    return Lemma(float(epoch.groups(letters)), min(1.0, exponent(epoch.counts(letters, most=SAMPLE))))


MODELS = {
    "ours": Model(che, Lru),
    "paper": Model(lemma, Lru),
    "direct": Model(lambda epoch, letters, feeder: eviction.Direct(float(epoch.groups(letters))), Direct),
    "slc": Model(lambda epoch, letters, feeder: Colliding(float(epoch.groups(letters))), Direct),
}


@dataclass(frozen=True)
class Planner:
    """What is known of an epoch; every figure is taken once."""

    epoch: Epoch
    known: dict[tuple[str, str, str], Curve] = field(default_factory=dict, repr=False)
    asked: set[str] = field(default_factory=set, repr=False)

    def problem(self, queries: Sequence[str], memory: float, model: str) -> Problem:
        def groups(grain: Grain) -> float:
            self.asked.add(name_letters(grain))
            return float(self.epoch.groups(name_letters(grain)))

        def curve(grain: Grain, feeder: Grain | None) -> Curve:
            key = model, name_letters(grain), name_letters(feeder or frozenset())
            if key not in self.known:
                self.known[key] = MODELS[model].curve(self.epoch, *key[1:])
            return self.known[key]

        return Problem(
            queries=tuple(letters(query) for query in queries),
            rows=float(self.epoch.rows),
            memory=float(memory),
            groups=groups,
            entry=lambda grain: 1.0,
            length=lambda grain, depth: 1.0,
            probe=lambda grain: 1.0,
            evict=lambda grain: 1.0,
            curve=curve,
        )

    def plan(self, queries: Sequence[str], memory: float, model: str = "ours") -> Plan:
        problem = self.problem(queries, memory, model)
        start = process_time()
        if model == "slc":
            choice = aggregate_tree(problem, "sl")
            return Plan(model, choice.configuration, choice.spaces, problem, process_time() - start)
        grown = self.allocated(aggregate_tree(problem, "lagrange").configuration, queries, memory, model)
        return replace(grown, seconds=process_time() - start)

    def again(self, plan: Plan, memory: float) -> Plan:
        """The same tree with other memory."""
        queries = [name_letters(grain) for grain in plan.problem.queries]
        return self.allocated(plan.configuration, queries, memory, plan.model)

    def allocated(
        self, configuration: Configuration, queries: Sequence[str], memory: float, model: str = "ours"
    ) -> Plan:
        """This tree, by FPTAS."""
        problem = self.problem(queries, memory, model)
        start = process_time()
        spaces = fptas(_tree(configuration, problem), EPSILON)
        return Plan(model, configuration, tuple(spaces), problem, process_time() - start)


def _tree(configuration: Configuration, problem: Problem) -> Tree:
    """With tables for all that feeds."""
    return plant(configuration, problem, [bool(configuration.children(i)) for i in range(len(configuration.nodes))])


@dataclass(frozen=True)
class Plan:
    """A tree and the entries of its nodes; `seconds` of processor time it took, statistics included."""

    model: str
    configuration: Configuration
    entries: tuple[float, ...]
    problem: Problem
    seconds: float

    @property
    def predicted(self) -> float:
        """Hash operations a tuple, by the plan's own model."""
        return tree_cost(given(_tree(self.configuration, self.problem), self.entries), self.entries)

    @property
    def whole(self) -> bool:
        """Whether every table has room for all groups of its relation."""
        return all(
            b >= 0.999 * self.problem.groups(node.grain)
            for i, (node, b) in enumerate(zip(self.configuration.nodes, self.entries, strict=True))
            if self.configuration.children(i)
        )

    def same(self, other: Plan) -> bool:
        """The same tree, entries within 1 %."""
        near = all(abs(a - b) <= 0.01 * max(a, b) for a, b in zip(self.entries, other.entries, strict=False))
        return self.configuration.edges == other.configuration.edges and near

    def shrunk(self, share: float) -> Plan:
        return replace(self, entries=tuple(share * space for space in self.entries))

    def run(self, epochs: Iterable[Epoch]) -> Counted:
        table = MODELS[self.model].table
        return together(run_tree(epoch, self.configuration, self.entries, table) for epoch in epochs)


def tuned(plan: Plan, epochs: Sequence[Epoch], shares: Sequence[float] = SHRUNK) -> tuple[Plan, Counted]:
    """SLC under the peak load with which it costs least, all counted.

    The paper tries peak loads and keeps the best. A peak load shrinks all tables by one factor (seed smap, Sec. 8.5.2);
    the other way there, moving space from queries to phantoms, has no place where queries hold all their groups.
    """
    tried = [(plan.shrunk(share), plan.shrunk(share).run(epochs[:1])) for share in shares]
    best = min(tried, key=lambda each: each[1].total)[0]
    return best, best.run(epochs)
