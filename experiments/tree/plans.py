"""Plans for aggregate trees, as the experiments compare them: what is known of an epoch, and five ways to plan with it.

    ours      LRU tables by Che's approximation, FPTAS, all of an epoch's cost
    paper     the same by Lemma 6.1: what the paper plans with
    direct    direct-mapped tables by the model of collisions (seed smap, Eq. 13), FPTAS, all of an epoch's cost
    slc       what the paper compares itself with: direct-mapped tables by Eq. 13, space by supernodes (SL of seed
              smap), only what happens during the epoch counts (Sec. VIII-A)
    uniform   LRU tables by Lemma 7.1, all or nothing: the paper's for uniform data (Sec. VII)

All of them grow their trees by Algorithm 1, as the engine has it (`sharing.choose.aggregate_tree`) or as it is printed
(`TreePlanner.printed`, for few queries). Memory is counted in entries, whatever their width, and
all hash operations cost the same (Sec. VIII-A, B).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.models.curves import Lemma
from experiments.tree.streams import RecordEpoch
from experiments.tree.tables import CountedTree, DirectTable, EntryTable, LruTable, run_tree, together
from penstock.sharing.allocate.all_or_nothing import all_or_nothing
from penstock.sharing.allocate.fptas import fptas
from penstock.sharing.allocate.registry import ALLOCATORS, Allocator
from penstock.sharing.choose.aggregate_tree import aggregate_tree
from penstock.sharing.choose.printed_tree import printed_tree
from penstock.sharing.graph.configuration import STREAM, Configuration, Node
from penstock.sharing.graph.grain import Grain, letters
from penstock.sharing.graph.notation import name_letters
from penstock.sharing.model import eviction
from penstock.sharing.model.collision import rate, rates
from penstock.sharing.model.eviction import Che, Curve, Taken
from penstock.sharing.model.figures import PlantedTree, given, plant
from penstock.sharing.model.flow import tree_cost
from penstock.sharing.model.popularity import estimated, exponent
from penstock.sharing.model.problem import Problem

EPSILON = 0.05  # Sec. VIII-A
SHRUNK = (1.0, 0.6, 0.3, 0.1)  # of the memory that a peak load leaves to SLC


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
    """A curve for a relation below a feeder (empty: the stream), its table, and how memory is allocated."""

    curve: Callable[[RecordEpoch, str, str], Curve]
    table: type[EntryTable]
    allocate: Allocator = lambda tree: fptas(tree, EPSILON)


def che(epoch: RecordEpoch, letters: str, feeder: str) -> Curve:
    """As the engine plans: by popularity in the node's own input, the feeder's groups once each; of the stream's
    records those that come close together once."""
    groups, counts = float(epoch.groups(letters)), epoch.sampled(letters, feeder)
    length = 1.0 if feeder else epoch.locality(letters)
    tuples = epoch.groups(feeder) if feeder else epoch.rows / length
    return Taken(Che(estimated(counts, max(tuples, groups), groups), float(epoch.rows)), 1.0, length)


def lemma(epoch: RecordEpoch, letters: str, feeder: str) -> Curve:
    """The paper takes the exponent that the relation has in the stream; Lemma 6.1 goes up to 1."""
    return Lemma(float(epoch.groups(letters)), min(1.0, exponent(epoch.sampled(letters))))


MODELS = {
    "ours": Model(che, LruTable),
    "paper": Model(lemma, LruTable),
    "direct": Model(lambda epoch, letters, feeder: eviction.DirectMapped(float(epoch.groups(letters))), DirectTable),
    "slc": Model(lambda epoch, letters, feeder: Colliding(float(epoch.groups(letters))), DirectTable, ALLOCATORS["sl"]),
    "uniform": Model(lambda epoch, letters, feeder: Lemma(float(epoch.groups(letters)), 0.0), LruTable, all_or_nothing),
}


@dataclass(frozen=True)
class TreePlanner:
    """What is known of an epoch, every figure taken once: numbers of groups are exact, popularity is a sample's."""

    epoch: RecordEpoch
    groups: dict[Grain, float] = field(default_factory=dict, repr=False)
    curves: dict[tuple[str, Grain, Grain | None], Curve] = field(default_factory=dict, repr=False)

    def problem(self, queries: Sequence[str], memory: float, model: str) -> Problem:
        def groups(grain: Grain) -> float:
            if grain not in self.groups:
                self.groups[grain] = float(self.epoch.groups(name_letters(grain)))
            return self.groups[grain]

        def curve(grain: Grain, feeder: Grain | None) -> Curve:
            key = model, grain, feeder
            if key not in self.curves:
                names = name_letters(grain), name_letters(feeder or frozenset())
                self.curves[key] = MODELS[model].curve(self.epoch, *names)
            return self.curves[key]

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

    def plan(
        self, queries: Sequence[str], memory: float, model: str = "ours", before: TreePlan | None = None
    ) -> TreePlan:
        """By Algorithm 1; with a plan from before, as the engine plans again: from its tree as well."""
        problem = self.problem(queries, memory, model)
        start = process_time()
        by = "sl" if model == "slc" else "lagrange"  # what trees are judged by as they grow
        grown = aggregate_tree(problem, by, start=pruned(before.configuration) if before else None).configuration
        return replace(self.allocated(grown, queries, memory, model), seconds=process_time() - start)

    def printed(self, queries: Sequence[str], memory: float, model: str = "ours") -> TreePlan:
        """By Algorithm 1 as the paper prints it: slow."""
        problem = self.problem(queries, memory, model)
        start = process_time()
        by = "sl" if model == "slc" else "lagrange"
        grown = printed_tree(problem, by).configuration
        return replace(self.allocated(grown, queries, memory, model), seconds=process_time() - start)

    def again(self, plan: TreePlan, memory: float) -> TreePlan:
        """The same tree with other memory."""
        queries = [name_letters(grain) for grain in plan.problem.queries]
        return self.allocated(plan.configuration, queries, memory, plan.model)

    def allocated(
        self, configuration: Configuration, queries: Sequence[str], memory: float, model: str = "ours"
    ) -> TreePlan:
        """This tree."""
        problem = self.problem(queries, memory, model)
        start = process_time()
        spaces = MODELS[model].allocate(_tree(configuration, problem))
        return TreePlan(model, configuration, tuple(spaces), problem, process_time() - start)


def pruned(configuration: Configuration) -> Configuration:
    """Without tables that feed one other node: they save nothing, and are nothing to start from.

    >>> from penstock.sharing.graph.notation import parse, text
    >>> text(pruned(parse("ABCD(ABC(AB) CD)")))
    'ABCD(AB CD)'
    """
    nodes: list[Node] = []
    places: list[int] = []  # of a node, or of what takes its place
    for i, node in enumerate(configuration.nodes):
        parent = STREAM if node.parent == STREAM else places[node.parent]
        if node.query or len(configuration.children(i)) > 1:
            nodes.append(Node(node.grain, parent, node.query))
            parent = len(nodes) - 1
        places.append(parent)
    return Configuration(tuple(nodes))


def _tree(configuration: Configuration, problem: Problem) -> PlantedTree:
    """With tables for all that feeds."""
    return plant(configuration, problem, [bool(configuration.children(i)) for i in range(len(configuration.nodes))])


@dataclass(frozen=True)
class TreePlan:
    """A tree and the entries of its nodes; `seconds` of processor time it took, statistics included."""

    model: str
    configuration: Configuration
    entries: tuple[float, ...]
    problem: Problem
    seconds: float

    @property
    def predicted(self) -> float:
        """Hash operations a record, by the plan's own model."""
        return tree_cost(given(_tree(self.configuration, self.problem), self.entries), self.entries)

    @property
    def spare(self) -> bool:
        """Whether memory is left over: all tables have what they can use."""
        return sum(self.entries) < 0.99 * self.problem.memory

    def same(self, other: TreePlan) -> bool:
        """The same tree, entries within 1 %."""
        near = all(abs(a - b) <= 0.01 * max(a, b) for a, b in zip(self.entries, other.entries, strict=False))
        return self.configuration.edges == other.configuration.edges and near

    def shrunk(self, share: float) -> TreePlan:
        return replace(self, entries=tuple(share * space for space in self.entries))

    def run(self, epochs: Iterable[RecordEpoch]) -> CountedTree:
        table = MODELS[self.model].table
        return together(run_tree(epoch, self.configuration, self.entries, table) for epoch in epochs)


def tuned(
    plan: TreePlan, epochs: Sequence[RecordEpoch], shares: Sequence[float] = SHRUNK
) -> tuple[TreePlan, CountedTree]:
    """SLC under the peak load with which it costs least, all counted.

    The paper tries peak loads and keeps the best. A peak load shrinks all tables by one factor (seed smap, Sec. 8.5.2);
    the other way there, moving space from queries to phantoms, has no place where queries hold all their groups.
    """
    tried = [(plan.shrunk(share), plan.shrunk(share).run(epochs[:1])) for share in shares]
    best = min(tried, key=lambda each: each[1].total)[0]
    return best, best.run(epochs)
