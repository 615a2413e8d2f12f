"""Plans for queries with epochs of different lengths, priced by a cycle (smap, Section 7), and cycles at work.

`sharing.choice` minimises the cost of a tuple. The experiments of Section 8.6 choose and allocate by Eq. 29, the cost of a
whole cycle with all its flushes; that is done here, for the few queries of an experiment. The optimum is found by moving
memory between tables in steps of 1 % of M: with flushes the cost of a part of the tree depends on what is above it, so
the dynamic programming of `sharing.exhaustive` is not exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

from penstock.lab.measure import Measured, Tables
from penstock.lab.smap import C1, C2, all_configurations, problem, tables_in
from penstock.lab.streams import Stream
from penstock.sharing.allocation import allocate
from penstock.sharing.collision import distinct, occupied
from penstock.sharing.configuration import Configuration, arrange
from penstock.sharing.cost import flush_cost, tuple_cost
from penstock.sharing.epochs import flush_counts
from penstock.sharing.feeding_graph import candidates
from penstock.sharing.grain import Grain, letters
from penstock.sharing.notation import name_letters
from penstock.sharing.problem import Problem
from penstock.sharing.tree import plant

MOVES = (0.08, 0.04, 0.02, 0.01)  # parts of M


@dataclass(frozen=True)
class Work:
    """Queries with their epochs' lengths in units, tuples and groups of a unit, memory, and flow lengths by depth."""

    epochs: Mapping[str, int]
    groups: dict[str, float]
    memory: float
    unit: float
    length: tuple[float, ...] = (1.0,)
    printed: bool = False

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(self.epochs)

    @property
    def cycle(self) -> int:
        return lcm(*self.epochs.values())

    def problem(self) -> Problem:
        return problem(self.groups, self.queries, self.memory, self.length, self.unit)


@dataclass(frozen=True)
class Plan:
    configuration: Configuration
    spaces: tuple[float, ...]
    cost: float  # of a tuple, with its part of all flushes


class Pricing:
    """Eq. 29 for one configuration: what `cost.per_cycle` computes, with all that does not change kept."""

    def __init__(self, configuration: Configuration, work: Work) -> None:
        asked = work.problem()
        self.tree = plant(configuration, asked)
        self.work = work
        self.counts = flush_counts(configuration, lambda grain: work.epochs[name_letters(grain)])
        self.tuples = work.unit * work.cycle
        self.seen = [distinct(g, self.tuples / n) for g, n in zip(self.tree.groups, self.counts, strict=True)]

    def __call__(self, spaces: Sequence[float]) -> float:
        """Cost of a cycle, per tuple."""
        buckets = [space / entry for space, entry in zip(spaces, self.tree.entries, strict=True)]
        entries = buckets if self.work.printed else [occupied(g, b) for g, b in zip(self.seen, buckets, strict=True)]
        flushed = [n * entry for n, entry in zip(self.counts, entries, strict=True)]
        return tuple_cost(self.tree, buckets) + flush_cost(self.tree, buckets, flushed) / self.tuples


def allocated(name: str, configuration: Configuration, work: Work) -> Plan:
    spaces = allocate(name, configuration, work.problem())
    return Plan(configuration, spaces, Pricing(configuration, work)(spaces))


def optimal(configuration: Configuration, work: Work) -> Plan:
    """ES for a cycle: the best heuristic, improved by moving memory between tables."""
    price = Pricing(configuration, work)
    starts = [allocate(name, configuration, work.problem()) for name in ("es", "sl", "sr")]
    spaces = list(min(starts, key=price))
    cost = price(spaces)
    for part in MOVES:
        step = part * work.memory
        while True:
            better = min(((price(moved), moved) for moved in _moves(spaces, step)), default=(cost, spaces))
            if better[0] >= cost * (1 - 1e-9):
                break
            cost, spaces = better
    return Plan(configuration, tuple(spaces), cost)


def _moves(spaces: Sequence[float], step: float) -> list[list[float]]:
    made = []
    for giver, space in enumerate(spaces):
        for taker in range(len(spaces)):
            if taker != giver and space - step > 0:
                moved = list(spaces)
                moved[giver] -= step
                moved[taker] += step
                made.append(moved)
    return made


def epes(work: Work, near: int = 8) -> Plan:
    """The best plan of all: every configuration with the allocation of SL, the cheapest ones improved to the optimum."""
    tried = [allocated("sl", one, work) for one in all_configurations(work.queries, work.groups)]
    tried.sort(key=lambda plan: plan.cost)
    return min((optimal(plan.configuration, work) for plan in tried[:near]), key=lambda plan: plan.cost)


def greedy_collisions(alloc: str, work: Work) -> Plan:
    """GC by the cost of a cycle; phantoms left with fewer than two children go."""
    chosen: tuple[Grain, ...] = ()
    best = allocated(alloc, _configuration(chosen, work), work)
    while True:
        tried = []
        for candidate in candidates(letters(query) for query in work.queries):
            kept = _useful((*chosen, candidate), work)
            if candidate in kept and candidate not in chosen:
                tried.append((allocated(alloc, _configuration(kept, work), work), kept))
        found = min(tried, key=lambda each: each[0].cost, default=(best, chosen))
        if found[0].cost >= best.cost:
            return best
        best, chosen = found


def greedy_space(phi: float, work: Work) -> Plan:
    """GP by the cost of a cycle: φ·g buckets for each relation while one fits, then all memory by PL."""
    asked = work.problem()
    chosen: list[Grain] = []
    left = candidates(letters(query) for query in work.queries)

    def need(grain: Grain) -> float:
        return phi * asked.groups(grain) * asked.entry(grain)

    def cost(phantoms: Sequence[Grain]) -> float:
        made = _configuration(phantoms, work)
        return Pricing(made, work)([need(node.grain) for node in made.nodes])

    memory = work.memory - sum(need(letters(query)) for query in work.queries)
    here = cost(chosen)
    while fitting := [grain for grain in left if need(grain) < memory]:
        costs = {grain: cost([*chosen, grain]) for grain in fitting}
        added = max(fitting, key=lambda grain: (here - costs[grain]) / need(grain))
        chosen.append(added)
        left.remove(added)
        memory -= need(added)
        here = costs[added]
    return allocated("pl", _configuration(_useful(tuple(chosen), work, children=1), work), work)


def _configuration(phantoms: Sequence[Grain], work: Work) -> Configuration:
    wanted = [letters(query) for query in work.queries]
    return arrange(wanted, phantoms, lambda grain: work.groups[name_letters(grain)])


def _useful(phantoms: tuple[Grain, ...], work: Work, children: int = 2) -> tuple[Grain, ...]:
    """Without phantoms that feed too few."""
    while True:
        made = _configuration(phantoms, work)
        idle = [node.grain for i, node in enumerate(made.nodes) if not node.query and len(made.children(i)) < children]
        if not idle:
            return phantoms
        phantoms = tuple(grain for grain in phantoms if grain != idle[-1])


def counted(stream: Stream, plan: Plan, work: Work, salt: int = 0) -> Measured:
    """A cycle at work: after each unit, what is due is flushed."""
    work_tables = Tables(stream, tables_in(plan.configuration, plan.spaces, work.problem()), salt)
    return run_cycles(stream, work_tables, work)


def run_cycles(stream: Stream, tables: Tables, work: Work) -> Measured:
    unit = int(work.unit)
    units = len(stream.rows) // unit // work.cycle * work.cycle
    for number in range(units):
        tables.run(stream.rows[number * unit : (number + 1) * unit])
        due = [query for query, length in work.epochs.items() if (number + 1) % length == 0]
        if due:
            tables.flush(due)
    return tables.measured()


def counted_cost(stream: Stream, plan: Plan, work: Work) -> float:
    """Eq. 29 with counted collisions and flushes, per tuple."""
    return counted(stream, plan, work).whole(C1, C2)


def with_memory(work: Work, memory: float) -> Work:
    return replace(work, memory=memory)
