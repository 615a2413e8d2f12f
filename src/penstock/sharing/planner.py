"""From the queries of a stream to its plan: phantoms chosen by cost in nanoseconds on this machine.

    relations ──► lattice (grains) ──► Problem (statistics, unit costs) ──► choice, allocation ──► tables

`auto` prices no sharing, phantoms alone, and phantoms with tables before queries as well, within the memory and parts
of it, and takes the cheapest; sharing has to promise a gain worth having. A named chooser and allocator is followed as
the paper has it (seed smap, Sec. 4 and 6). What the choice rests on goes into the plan (`Basis`), for
`sharing.explain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from typing import Protocol

from penstock.logical.query import Stream
from penstock.logical.types import Kind
from penstock.sharing.choice import choose
from penstock.sharing.choosing import Choice
from penstock.sharing.collision import rate
from penstock.sharing.configuration import STREAM, Configuration, Node
from penstock.sharing.cost import end_of_epoch, epoch_cost, flows, flush_bound
from penstock.sharing.costs import Costs
from penstock.sharing.feeding_graph import candidates
from penstock.sharing.fronts import without_fronts
from penstock.sharing.grain import Grain, feeds, fineness
from penstock.sharing.lattice import Lattice, lattice, name_of
from penstock.sharing.notation import text
from penstock.sharing.peak_load import Load, within_peak
from penstock.sharing.plan import Basis, Priced, Relation, SharedPlan, State, Table
from penstock.sharing.planning import AUTO, NONE, Planning
from penstock.sharing.problem import Problem
from penstock.sharing.search import Objective
from penstock.sharing.tree import Tree, buckets_of, plant, rates_of

WORTH = 0.95  # of the cost without sharing: what a shared plan must promise to stay below
SHARES = (1.0, 0.125)  # of the memory that are tried: smaller tables are nearer to the core
EACH = 0.5  # ns a tuple of the stream for one more table, whatever little reaches it: calls for each chunk
MOST = 200  # candidates that are counted
MOST_PASSED = 0.7  # of its tuples: a phantom that passes on more cannot pay
ALIKE = 50  # numbers of groups within about 1/ALIKE count as the same
DOUBT = 4.0  # times as many groups as expected that a limit on flushes holds for (`runtime.survey`)
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
    _sizes: dict[Grain, tuple[int, int]] = field(default_factory=dict)  # words of key and states, once each

    @cached_property
    def queries(self) -> dict[Grain, tuple[str, ...]]:
        """Queries that have the same groups are one relation."""
        found: dict[Grain, tuple[str, ...]] = {}
        for query, grain in self.net.grains.items():
            found[grain] = (*found.get(grain, ()), query)
        return found

    def words(self, grain: Grain) -> int:
        """Of the key."""
        return self._size(grain)[0]

    def kept(self, grain: Grain) -> int:
        """Words of states that a table of this grain keeps: those of all that it can feed."""
        return self._size(grain)[1]

    def _size(self, grain: Grain) -> tuple[int, int]:
        if grain not in self._sizes:
            fed = [query for query, coarse in self.net.grains.items() if feeds(grain, coarse)]
            self._sizes[grain] = max(1, -(-self.known.bits(grain) // 64)), self.state_words(fed)
        return self._sizes[grain]

    def state_words(self, queries: Sequence[str]) -> int:
        states = {(s, r.types[s.column].kind) for r in self.relations if r.query in queries for s in r.states}
        return sum(_words(state, kind) for state, kind in states)

    def size(self, grain: Grain) -> float:
        """Bytes of an entry."""
        return 8.0 * (self.words(grain) + 1 + self.kept(grain))

    def probing(self, grain: Grain) -> float:
        """Nanoseconds of a probe."""
        each = self.costs.probe_at(self.memory) + self.costs.fold * self.kept(grain)
        return each + self.costs.word * (self.words(grain) - 2)

    def inserting(self, grain: Grain, doubt: float = 1.0) -> float:
        """Nanoseconds of an insert into the leaves of a query and those that have the same groups, where there are
        `doubt` times as many as expected."""
        names, bulk = self.queries[grain], doubt * self.known.groups(grain) * (self.size(grain) + 16)
        each = self.costs.insert_at(bulk) + self.costs.word * (self.words(grain) - 2)
        return each * len(names) + self.costs.fold * sum(self.state_words([name]) for name in names)

    def problem(self) -> Problem:
        def probe(grain: Grain) -> float:
            return self.known.share(grain) * self.probing(grain)

        def insert(grain: Grain) -> float:
            return self.known.share(grain) * self.inserting(grain)

        return Problem(
            tuple(self.queries), self.known.rows, self.memory, self.known.groups, self.size, self.known.length, probe,
            insert,
        )  # fmt: skip

    def peak(self, configuration: Configuration) -> Load:
        """The most nanoseconds that the end of a task takes with tables of these spaces."""
        nodes = configuration.nodes
        tree = plant(configuration, self.problem())._replace(
            probe=[self.probing(node.grain) for node in nodes],
            evict=[self.inserting(node.grain, DOUBT) if node.query else 0.0 for node in nodes],
        )

        def load(spaces: Sequence[float]) -> float:
            buckets = [float(int(space / self.size(node.grain))) for node, space in zip(nodes, spaces, strict=True)]
            return flush_bound(tree, buckets, self.costs.passing, DOUBT)

        return load

    def objective(self) -> Objective:
        """Nanoseconds of a tuple, with its part of the end of the task, and of passing evicted entries on."""
        passing = self.costs.passing

        def price(tree: Tree, buckets: Sequence[float]) -> float:
            evicted: list[float] = []
            moved = 0.0
            for parent, x, table in zip(tree.parents, rates_of(tree, buckets), tree.tables, strict=True):
                evicted.append((1.0 if parent == STREAM else evicted[parent]) * x)
                moved += evicted[-1] if table else 0.0
            return epoch_cost(tree, buckets) + passing * moved + EACH * sum(tree.tables)

        return price


def _words(state: State, kind: Kind) -> int:
    """Of a state in a row, as long as it has met no NULL and no large sum (`runtime.folding.Shape`)."""
    if state.kind == "sum" and kind is Kind.DOUBLE:
        return 2
    return {"count": 0, "moments": 5}.get(state.kind, 1)


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


def reprice(plan: SharedPlan, known: Statistics, costs: Costs) -> float:
    """What the tables of a plan cost by newer statistics."""
    memory = 0.0 if plan.basis is None else sum(plan.basis.spaces)
    task = Task(plan.relations, lattice(plan.relations), known, costs, memory)
    problem, objective = task.problem(), task.objective()
    if plan.basis is None:
        return _bare(problem, objective).cost
    return _price(plan.basis.configuration, plan.basis.spaces, problem, objective)


def _considered(task: Task, planning: Planning) -> dict[str, Choice]:
    """The alternatives by name; of a plan that is asked for, just that."""
    problem, objective = task.problem(), task.objective()
    if planning.plan == NONE or len(problem.queries) < 2:
        return {NONE: _bare(problem, objective)}
    alloc = "sl" if planning.alloc == AUTO else planning.alloc
    phantoms = _worthwhile(task)
    if planning.plan != AUTO:
        chosen = choose(planning.plan, problem, alloc, objective=objective, phantoms=phantoms)
        return {f"{planning.plan}-{alloc}": _limited(chosen, task, planning.peak_load)}
    found = {NONE: _bare(problem, objective)}
    for share in SHARES:
        smaller = replace(task, memory=share * task.memory)
        problem, objective = smaller.problem(), smaller.objective()
        bare = choose("gc", problem, alloc, fronts=False, objective=objective, phantoms=phantoms)
        spaces = without_fronts(bare.configuration, problem, alloc, objective=objective)
        fronted = Choice(bare.configuration, spaces, _price(bare.configuration, spaces, problem, objective), bare.steps)
        best = min(bare, fronted, key=lambda choice: choice.cost)
        found[f"gc-{alloc} in {smaller.memory / 1024:.0f} KiB"] = _limited(best, smaller, planning.peak_load)
    return found


def _worthwhile(task: Task) -> list[Grain]:
    """Candidates that may pay: those that pass on much fewer tuples than they take, and of those that have the same
    groups (as attributes that determine others do) the finest, which feeds the most."""
    known, limit = task.known, task.memory
    finest: dict[tuple[int, int], list[Grain]] = {}
    for grain in sorted(candidates(task.queries, MOST), key=fineness, reverse=True):
        groups, words = known.groups(grain), task.words(grain)
        passed = max(groups / known.rows, rate(groups, limit / (8 * (words + 2)), known.length(grain, 1)))
        if passed > MOST_PASSED:
            continue
        alike = finest.setdefault((round(ALIKE * log(groups)), words), [])
        if not any(feeds(finer, grain) for finer in alike):
            alike.append(grain)
    return [grain for alike in finest.values() for grain in alike]


def _limited(choice: Choice, task: Task, limit: float | None) -> Choice:
    """The same with a flush at the end of a task that takes at most so many nanoseconds (seed smap, Sec. 8.5.2), also
    where there are more groups than expected."""
    if limit is None:
        return choice
    configuration, problem = choice.configuration, task.problem()
    spaces = within_peak(configuration, choice.spaces, problem, task.peak(configuration), limit)
    return Choice(configuration, spaces, _price(configuration, spaces, problem, task.objective()), choice.steps)


def _bare(problem: Problem, objective: Objective) -> Choice:
    """No tables: every query is fed by the stream."""
    configuration = Configuration(tuple(Node(grain, STREAM, True) for grain in problem.queries))
    spaces = (0.0,) * len(problem.queries)
    return Choice(configuration, spaces, _price(configuration, spaces, problem, objective), ())


def _price(configuration: Configuration, spaces: Sequence[float], problem: Problem, objective: Objective) -> float:
    tree = plant(configuration, problem, [space > 0 for space in spaces])
    return objective(tree, buckets_of(tree, spaces))


def _built(stream: Stream, task: Task, best: str, considered: Mapping[str, Choice]) -> SharedPlan:
    chosen, queries = considered[best], task.queries
    problem = replace(task, memory=sum(chosen.spaces)).problem()  # tables cost what their own size makes them cost
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
        best, int(sum(chosen.spaces)), task.known.rows, task.costs, chosen.cost, flushing, tuple(costs.items()), priced,
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
