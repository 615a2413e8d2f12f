"""Plans for queries with epochs of different lengths, priced by a cycle (smap, Section 7), and cycles at work.

Phantoms are chosen by `sharing.choose.choice` with the cost of a cycle (Eq. 29). The optimal space for a configuration
is found here by moving memory between tables in steps of 1 % of M: with flushes the cost of a part of the tree depends
on what is above it, so the dynamic programming of `sharing.allocate.exhaustive`, which minimises Eq. 7, is only where
it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import lcm

import numpy as np

from experiments.kit.measure import MeasuredRun, Tables
from experiments.kit.streams import Codes, PaperStream
from experiments.models.costs import cycle_cost, epochs_of
from experiments.models.spaces import allocate
from experiments.smap.common import C1, C2, all_configurations, problem, tables_in
from penstock.sharing.choose.choice import choose
from penstock.sharing.choose.search import Objective
from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.model.figures import buckets_of, plant
from penstock.sharing.model.problem import Problem

MOVES = (0.08, 0.04, 0.02, 0.01)  # parts of M


@dataclass(frozen=True)
class Work:
    """Queries with their epochs' lengths in units, records and groups of a unit, memory, and flow lengths by depth."""

    epochs: Mapping[str, int]
    groups: dict[str, float]
    memory: float
    unit: float
    length: tuple[float, ...] = (1.0,)
    printed: bool = False  # flushes of all buckets, not of occupied entries

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(self.epochs)

    @property
    def cycle(self) -> int:
        return lcm(*self.epochs.values())

    def problem(self) -> Problem:
        return problem(self.groups, self.queries, self.memory, self.length, self.unit)

    @property
    def objective(self) -> Objective:
        """The cost of a record with its part of all flushes."""
        return partial(cycle_cost, epochs=epochs_of(self.epochs), printed=self.printed)


@dataclass(frozen=True)
class CyclePlan:
    configuration: Configuration
    spaces: tuple[float, ...]
    cost: float  # of a record, with its part of all flushes


def chosen(name: str, alloc: str, work: Work, phi: float = 1.0, spread: bool = True) -> CyclePlan:
    """GC or GP by the cost of a cycle."""
    found = choose(name, work.problem(), alloc, phi=phi, spread=spread, objective=work.objective)
    return CyclePlan(found.configuration, found.spaces, found.cost)


def price(configuration: Configuration, spaces: Sequence[float], work: Work) -> float:
    tree = plant(configuration, work.problem())
    return work.objective(tree, buckets_of(tree, spaces))


def allocated(name: str, configuration: Configuration, work: Work) -> CyclePlan:
    spaces = allocate(name, configuration, work.problem())
    return CyclePlan(configuration, spaces, price(configuration, spaces, work))


def optimal(configuration: Configuration, work: Work) -> CyclePlan:
    """ES for a cycle: the best of ES for a record, SL and SR, improved by moving memory between tables."""
    tree, objective = plant(configuration, work.problem()), work.objective

    def cost_of(spaces: Sequence[float]) -> float:
        return objective(tree, buckets_of(tree, spaces))

    starts = [list(allocate(name, configuration, work.problem())) for name in ("es", "sl", "sr")]
    spaces: list[float] = min(starts, key=cost_of)
    cost = cost_of(spaces)
    for part in MOVES:
        while True:
            moved = min(_moves(spaces, part * work.memory), key=cost_of, default=spaces)
            if cost_of(moved) >= cost * (1 - 1e-9):
                break
            spaces, cost = moved, cost_of(moved)
    return CyclePlan(configuration, tuple(spaces), cost)


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


def epes(work: Work, near: int = 8) -> CyclePlan:
    """The best plan of all: every configuration with the space of SL, the cheapest ones improved to the optimum."""
    tried = [allocated("sl", one, work) for one in all_configurations(work.queries, work.groups)]
    tried.sort(key=lambda plan: plan.cost)
    return min((optimal(plan.configuration, work) for plan in tried[:near]), key=lambda plan: plan.cost)


def counted(stream: PaperStream, plan: CyclePlan, work: Work, salt: int = 0) -> MeasuredRun:
    """The plan at work on all whole cycles of the stream, or on one cycle of a shorter one, played again and again."""
    return run_cycles(stream, Tables(stream, tables_in(plan.configuration, plan.spaces, work.problem()), salt), work)


def run_cycles(stream: PaperStream, tables: Tables, work: Work) -> MeasuredRun:
    """After each unit, what is due is flushed."""
    unit = int(work.unit)
    units = max(1, len(stream.rows) // unit // work.cycle) * work.cycle
    for number in range(units):
        tables.run(_around(stream.rows, number * unit, unit))
        due = [query for query, length in work.epochs.items() if (number + 1) % length == 0]
        if due:
            tables.flush(due)
    return tables.measured()


def _around(rows: Codes, start: int, count: int) -> Codes:
    """So many rows from there on, from the first one again after the last."""
    start %= len(rows)
    found = rows[start : start + count]
    while len(found) < count:
        found = np.concatenate([found, rows[: count - len(found)]])
    return found


def counted_cost(stream: PaperStream, plan: CyclePlan, work: Work) -> float:
    """Eq. 29 with counted collisions and flushes, per record."""
    return counted(stream, plan, work).whole(C1, C2)
