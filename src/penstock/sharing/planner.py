"""From the queries of a stream to its plan: phantoms chosen by cost in nanoseconds on this machine.

    relations ──► lattice (grains) ──► Problem (statistics, unit costs) ──► choice, allocation ──► tables

`auto` prices no sharing, phantoms alone, and phantoms with tables before queries as well, and takes the cheapest;
sharing has to promise a gain worth having. A named chooser and allocator is followed as the paper has it (seed smap,
Sec. 4 and 6). What the choice rests on goes into the plan (`Basis`), for `sharing.explain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.logical.query import Stream
from penstock.sharing.choice import Choice, choose
from penstock.sharing.configuration import STREAM, Configuration, Node
from penstock.sharing.cost import end_of_epoch, epoch_cost, flows
from penstock.sharing.costs import Costs
from penstock.sharing.fronts import without_fronts
from penstock.sharing.grain import Grain, feeds
from penstock.sharing.lattice import Lattice, lattice, name_of
from penstock.sharing.notation import text
from penstock.sharing.plan import Basis, Priced, Relation, SharedPlan, Table
from penstock.sharing.planning import AUTO, NONE, Planning
from penstock.sharing.problem import Problem
from penstock.sharing.search import Objective
from penstock.sharing.tree import Tree, buckets_of, plant, rates_of

WORTH = 0.95  # of the cost without sharing: what a shared plan must promise to stay below
KEEP_BELOW = 1.3  # flow length under which the more frequent resident is kept (models.md, replacement by depth)


class Statistics(Protocol):
    """What is known of a stream: tuples of a task, and for any grain its groups in a task, its flow length at a depth,
    the share of tuples that it takes, and the bits of its key."""

    @property
    def rows(self) -> float: ...
    def groups(self, grain: Grain) -> float: ...
    def length(self, grain: Grain, depth: int) -> float: ...
    def share(self, grain: Grain) -> float: ...
    def bits(self, grain: Grain) -> int: ...


@dataclass(frozen=True)
class Task:
    """A planning task: the queries of one stream with all that is known."""

    relations: tuple[Relation, ...]
    net: Lattice
    known: Statistics
    costs: Costs
    memory: float

    @property
    def queries(self) -> dict[Grain, tuple[str, ...]]:
        """Queries that have the same groups are one relation."""
        found: dict[Grain, tuple[str, ...]] = {}
        for query, grain in self.net.grains.items():
            found[grain] = (*found.get(grain, ()), query)
        return found

    def words(self, grain: Grain) -> int:
        return max(1, -(-self.known.bits(grain) // 64))

    def state_words(self, queries: Sequence[str]) -> int:
        states = {state for r in self.relations if r.query in queries for state in r.states}
        return sum({"count": 0, "moments": 5}.get(state.kind, 1) for state in states)

    def kept(self, grain: Grain) -> int:
        """Words of states that a table of this grain keeps: those of all that it can feed."""
        return self.state_words([query for query, fed in self.net.grains.items() if feeds(grain, fed)])

    def problem(self) -> Problem:
        entry = {}
        queries = self.queries

        def size(grain: Grain) -> float:
            if grain not in entry:
                entry[grain] = 8.0 * (self.words(grain) + 1 + self.kept(grain))
            return entry[grain]

        def probe(grain: Grain) -> float:
            each = self.costs.probe_at(self.memory) + self.costs.fold * self.kept(grain)
            return self.known.share(grain) * (each + self.costs.word * (self.words(grain) - 2))

        def insert(grain: Grain) -> float:
            names = queries[grain]
            bulk = self.known.groups(grain) * (size(grain) + 16)
            each = self.costs.insert_at(bulk) + self.costs.word * (self.words(grain) - 2)
            folds = sum(self.state_words([name]) for name in names)
            return self.known.share(grain) * (each * len(names) + self.costs.fold * folds)

        return Problem(
            tuple(queries), self.known.rows, self.memory, self.known.groups, size, self.known.length, probe, insert
        )

    def objective(self) -> Objective:
        """Nanoseconds of a tuple, with its part of the end of the task, and of passing evicted entries on."""
        passing = self.costs.passing

        def price(tree: Tree, buckets: Sequence[float]) -> float:
            evicted: list[float] = []
            moved = 0.0
            for parent, x, table in zip(tree.parents, rates_of(tree, buckets), tree.tables, strict=True):
                evicted.append((1.0 if parent == STREAM else evicted[parent]) * x)
                moved += evicted[-1] if table else 0.0
            return epoch_cost(tree, buckets) + passing * moved

        return price


def plan_stream(
    stream: Stream,
    relations: tuple[Relation, ...],
    planning: Planning,
    known: Statistics,
    costs: Costs,
    memory: float,
) -> SharedPlan:
    """The plan for these queries, by what is known of the stream."""
    task = Task(relations, lattice(relations), known, costs, memory)
    considered = _considered(task, planning)
    best = min(considered, key=lambda name: considered[name].cost)
    if planning.plan == AUTO and considered[best].cost > WORTH * considered[NONE].cost:
        best = NONE
    return _built(stream, task, best, considered)


def reprice(plan: SharedPlan, known: Statistics, costs: Costs, memory: float) -> float:
    """What the tables of a plan cost by newer statistics."""
    task = Task(plan.relations, lattice(plan.relations), known, costs, memory)
    problem, objective = task.problem(), task.objective()
    if plan.basis is None:
        return _bare(problem, objective).cost
    return _price(plan.basis.configuration, plan.basis.spaces, problem, objective)


def _considered(task: Task, planning: Planning) -> dict[str, Choice]:
    """The alternatives by name; of a plan that is asked for, just that."""
    problem, objective = task.problem(), task.objective()
    if planning.plan == NONE:
        return {NONE: _bare(problem, objective)}
    alloc = "sl" if planning.alloc == AUTO else planning.alloc
    if planning.plan != AUTO:
        return {f"{planning.plan}-{alloc}": choose(planning.plan, problem, alloc, objective=objective)}
    found = {NONE: _bare(problem, objective)}
    if len(problem.queries) > 1:
        found[f"gc-{alloc}"] = choose("gc", problem, alloc, fronts=False, objective=objective)
        found[f"gc-{alloc} with fronts"] = _fronted(choose("gc", problem, alloc, objective=objective), task, alloc)
    return found


def _bare(problem: Problem, objective: Objective) -> Choice:
    """No tables: every query is fed by the stream."""
    configuration = Configuration(tuple(Node(grain, STREAM, True) for grain in problem.queries))
    spaces = (0.0,) * len(problem.queries)
    return Choice(configuration, spaces, _price(configuration, spaces, problem, objective), ())


def _fronted(choice: Choice, task: Task, alloc: str) -> Choice:
    """The same configuration, with tables before those queries alone where they pay."""
    problem, objective = task.problem(), task.objective()
    spaces = without_fronts(choice.configuration, problem, alloc, objective=objective)
    return Choice(choice.configuration, spaces, _price(choice.configuration, spaces, problem, objective), choice.steps)


def _price(configuration: Configuration, spaces: Sequence[float], problem: Problem, objective: Objective) -> float:
    tree = plant(configuration, problem, [space > 0 for space in spaces])
    return objective(tree, buckets_of(tree, spaces))


def _built(stream: Stream, task: Task, best: str, considered: Mapping[str, Choice]) -> SharedPlan:
    chosen, problem, queries = considered[best], task.problem(), task.queries
    nodes = chosen.configuration.nodes
    names = _names(nodes, queries)
    buckets = [int(space / problem.entry(node.grain)) for node, space in zip(nodes, chosen.spaces, strict=True)]
    tables = _tables(chosen.configuration, names, queries, buckets, problem)
    priced = tuple(
        Priced(
            names[node.grain], chosen.configuration.depth(i), problem.groups(node.grain), buckets[i],
            problem.entry(node.grain), problem.length(node.grain, chosen.configuration.depth(i)),
            flow.fed * task.known.share(node.grain), flow.rate, flow.evictions, flow.occupied, flow.cost,
            task.known.share(node.grain), problem.probe(node.grain), problem.evict(node.grain) if node.query else 0.0,
            queries[node.grain] if node.query else (),
        )
        for i, (node, flow) in enumerate(zip(nodes, flows(chosen.configuration, buckets, problem), strict=True))
    )  # fmt: skip
    flushing = end_of_epoch(chosen.configuration, buckets, problem)
    costs = {name: choice.cost for name, choice in considered.items()}
    basis = Basis(
        best, int(task.memory), task.known.rows, task.costs, chosen.cost, flushing, tuple(costs.items()), priced,
        chosen.configuration, chosen.spaces,
    )  # fmt: skip
    return SharedPlan(stream, task.relations, text(chosen.configuration, names.__getitem__), tables, basis)


def _names(nodes: Sequence[Node], queries: Mapping[Grain, tuple[str, ...]]) -> dict[Grain, str]:
    """Queries by their own names, phantoms by their columns; each different."""
    found: dict[Grain, str] = {}
    for node in nodes:
        name = "+".join(queries[node.grain]) if node.query else name_of(node.grain)
        taken, number = name, 2
        while taken in found.values():
            taken, number = f"{name}~{number}", number + 1
        found[node.grain] = taken
    return found


def _tables(
    configuration: Configuration,
    names: Mapping[Grain, str],
    queries: Mapping[Grain, tuple[str, ...]],
    buckets: Sequence[int],
    problem: Problem,
) -> tuple[Table, ...]:
    """The tables of the tree; a relation without buckets is passed by: what it would feed, its feeder feeds."""
    place: list[int] = []  # the table that takes what falls to a node
    made: list[Table] = []
    fed: list[list[str]] = []
    for i, node in enumerate(configuration.nodes):
        above = STREAM if node.parent == STREAM else place[node.parent]
        if buckets[i]:
            keep = problem.length(node.grain, configuration.depth(i)) < KEEP_BELOW
            made.append(Table(names[node.grain], above, (), buckets[i], keep))
            fed.append([])
            above = len(made) - 1
        place.append(above)
        if node.query and above != STREAM:
            fed[above] += queries[node.grain]
    return tuple(
        Table(table.name, table.parent, tuple(queries), table.buckets, table.keep)
        for table, queries in zip(made, fed, strict=True)
    )
