"""Aggregate trees for dozens and hundreds of queries: the greedy of seed aggregate-tree (Sec. V, Algorithm 1).

All queries start below the stream.  Each step takes the best of two kinds of moves, as long as it saves a share ε:

* the union C of two siblings becomes a table below their parent P and adopts all children of P that are subsets of it
  (lines 4 to 14).  Where one sibling contains the other, C is that sibling, which then feeds; C = P is no move.
* a table that is no longer worth it goes, and its children fall to its parent (lines 15 to 23).

Then every node is hung below the table that passes on the least of all that can feed it, wherever that stands, which
is never worse (the paper only looks among siblings).  In the end, few queries are tried without each of the tables
found: what was best at first may have kept better ones out.

    AB BC CD  ──►  ABC(AB BC) CD  ──►  ABCD(ABC(AB BC) CD)

The paper allocates memory for every possible move, quadratically many in each step.  Here a move is judged by sums
over what flows (`growing`): C takes in n records, passes on out(b) for the children's n each, and pays for b entries at
the price of memory.  Only the best moves are then carried out and allocated for.  Counting the groups of a union costs
more than all the rest: the most promising by a guess (`growing.Known.guess`) come first, a step asks for a limited
number of them, and those are passed over that save too little even with the fewest groups they can have, as many as any
that they feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from time import thread_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.allocate.registry import Allocator, allocator
from penstock.sharing.choose.growing import GrowingTree, KnownRelations
from penstock.sharing.choose.search import ChosenTables, Objective, Step
from penstock.sharing.choose.siblings import Siblings
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.model.figures import buckets_of, given, plant
from penstock.sharing.model.flow import tree_cost
from penstock.sharing.model.problem import Problem

Array = NDArray[np.float64]

EPSILON = 1e-3  # share of the cost that a step must save
LOOKUPS, FIRST_LOOKUPS = 48, 256  # unions of a node's children whose groups are asked for in a step, and in the first
MOST_UNIONS = 4096  # of a node's children that are kept in mind
MOST_AGAIN = 24  # queries up to which it is tried what would come without each table that was found
TRIES, MORE = 3, 8  # moves of a step that are allocated for; and where none of them pays, before there is an end
BY_PRICE = ("lagrange", "fptas", "all-or-nothing")  # too slow for every step; the price of memory stands for them


class Move(NamedTuple):
    """What it saves, roughly; the table's mask, and where it comes (`parent`) or which one goes."""

    saved: float
    mask: int
    parent: int
    removed: int


def aggregate_tree(
    problem: Problem,
    alloc: str = "fptas",
    *,
    objective: Objective = tree_cost,
    epsilon: float = EPSILON,
    ends: float = inf,
    start: Configuration | None = None,
) -> ChosenTables:
    """The tree that the greedy finds, with its memory allocated; leaf queries have no tables.

    When the thread's processor time is `ends` it takes what it has.  An earlier tree to `start` from is tried first:
    where little has changed, little is left to do.
    """
    divide = allocator(alloc)
    search = _Search(GrowingTree(KnownRelations(problem), None if alloc in BY_PRICE else divide, objective))
    steps = [Step(None, search.tree.cost)]
    if start is not None:
        steps += search.regrow(start, epsilon, ends)
    else:
        steps += search.grow(epsilon, ends)
    while more := search.again(epsilon, ends):
        steps += more
    found = _allocated(search.tree, divide, objective, steps)
    if search.kept is None or search.kept.parents == search.tree.parents:
        return found
    # What was judged by the price of memory may come out dearer than the tree it started from.
    return min(found, _allocated(search.kept, divide, objective, []), key=lambda choice: choice.cost)


def _allocated(tree: GrowingTree, divide: Allocator, objective: Objective, steps: Sequence[Step]) -> ChosenTables:
    configuration, numbers = tree.configuration()
    planted = plant(configuration, tree.problem, [n in tree.tables for n in numbers])
    spaces = divide(planted)
    planted = given(planted, spaces)
    return ChosenTables(configuration, tuple(spaces), objective(planted, buckets_of(planted, spaces)), tuple(steps))


class _Search:
    def __init__(self, tree: GrowingTree) -> None:
        self.tree, self.known, self.problem = tree, tree.known, tree.problem
        self.words = max(1, -(-max(mask.bit_length() for mask in tree.masks.values()) // 64))
        self.siblings: dict[int, Siblings] = {}
        self.barred: set[int] = set()
        self.lookups = FIRST_LOOKUPS
        self.cheapest = min(self.known.size(mask)[1] for mask in tree.masks.values())
        for mask in tree.masks.values():
            self.known.groups(mask)
        self.tree.solve()
        self.start = tree.copy()
        self.kept: GrowingTree | None = None  # the earlier tree, as it was

    def regrow(self, before: Configuration, epsilon: float, ends: float) -> list[Step]:
        """The greedy from an earlier tree, and from the start if there is time; the steps to what is cheaper."""
        self.tree = self.start.copy()
        self.tree.replant(before)
        self.tree.solve()
        self.kept = self.tree.copy()
        if self.tree.hang():
            self.tree.solve()
        steps = [Step(None, self.tree.cost), *self.grow(epsilon, ends)]
        found, self.tree = self.tree, self.start.copy()
        others = self.grow(epsilon, ends)
        if self.tree.cost < found.cost:
            return others
        self.tree = found
        return steps

    def grow(self, epsilon: float, ends: float) -> list[Step]:
        """Steps until none is worth it, or time is up."""
        steps: list[Step] = []
        while thread_time() < ends and (changed := self.step(epsilon, ends)) is not None:
            steps.append(Step(self.known.grain(changed), self.tree.cost))
        return steps

    def again(self, epsilon: float, ends: float) -> list[Step]:
        """The greedy without one of the tables it has found, from the rest of the tree or from the start: the steps, if
        that is cheaper."""
        before = self.tree
        for number in before.order() if len(before.queries) <= MOST_AGAIN else []:
            mask = before.masks[number]
            shorter = before.copy()
            shorter.remove(number)
            for other in (shorter, self.start):
                self.tree = other.copy()
                self.tree.settle()
                self.barred.add(mask)
                steps = [Step(self.known.grain(mask), self.tree.cost), *self.grow(epsilon, ends)]
                self.barred.discard(mask)
                if self.tree.cost < before.cost * (1.0 - epsilon):
                    return steps
        self.tree = before
        return []

    def step(self, epsilon: float, ends: float) -> int | None:
        """Carry out the best move; the mask of the table that came or went, None where no move is worth it."""
        for move in self._moves(ends):
            other = self.tree.copy()
            if move.removed != STREAM:
                other.remove(move.removed)
            else:
                other.place(move.mask, move.parent, self._adopted(move))
            other.settle()
            if other.cost < self.tree.cost * (1.0 - epsilon):
                self.tree = other
                return move.mask
        return None

    def _moves(self, ends: float) -> Iterator[Move]:
        """Those that seem to save most, first."""
        tried = self._best(TRIES, ends)
        yield from tried
        if len(tried) == TRIES and thread_time() < ends:
            yield from (move for move in self._best(MORE, ends) if move not in tried)

    def _adopted(self, move: Move) -> list[int]:
        children = self.tree.children()[move.parent]
        return [child for child in children if self.tree.masks[child] & ~move.mask == 0]

    def _best(self, tries: int, ends: float) -> list[Move]:
        """The moves that save most."""
        best = sorted((move for move in self._removals() if move.saved > 0.0), reverse=True)[:tries]
        fed = self.tree.children()
        for parent in self.siblings.keys() - fed.keys():
            del self.siblings[parent]
        for parent, children in fed.items():
            if len(children) < 2:
                continue
            siblings = self.siblings.setdefault(parent, Siblings(self.words))
            siblings.change(children, self.tree.masks)
            if len(siblings.unions) > 2 * MOST_UNIONS:
                self._limit(parent, siblings)
            for move in self._unions(parent, siblings, best, tries, ends):
                best = sorted((*best, move), reverse=True)[:tries]
        self.lookups = LOOKUPS
        return best

    def _removals(self) -> Iterator[Move]:
        tree = self.tree
        for n in tree.tables:
            fed, (size, probe) = tree.fed(tree.parents[n]), self.known.size(tree.masks[n])
            kept = fed * probe + self.problem.each * self.problem.rows + tree.out[n] * tree.leaving[n]
            kept += tree.price * size * tree.buckets[n]
            yield Move(kept - fed * (tree.leaving[n] - self.problem.passing), tree.masks[n], tree.parents[n], n)

    def _limit(self, parent: int, siblings: Siblings) -> None:
        """The most promising unions alone: those of hundreds of children are too many to be looked at in every step."""
        leaving = siblings.adopts @ np.array([self.tree.marginal[child] for child in siblings.children])
        saved = (self.tree.fed(parent) - self.known.guess(siblings.bits)) * leaving
        siblings.keep(np.argsort(-saved, kind="stable")[:MOST_UNIONS])

    def _unions(self, parent: int, siblings: Siblings, best: list[Move], tries: int, ends: float) -> Iterator[Move]:
        """Unions worth more than the last of the best, the most promising first."""
        tree, problem, known = self.tree, self.problem, self.known
        fed, above = tree.fed(parent), 0 if parent == STREAM else tree.masks[parent]
        leaving = siblings.adopts @ np.array([tree.marginal[child] for child in siblings.children])
        fixed = problem.each * problem.rows
        floor = [move.saved for move in best]
        worst = min(floor) if len(floor) == tries else 0.0
        gains, weights = fed * (leaving - self.cheapest) - fixed, leaving + problem.passing
        for union in self._promising(siblings, gains, weights, worst):
            mask = siblings.mask(int(union))
            if mask == above or mask in self.barred or tree.numbers.get(mask) in tree.tables:
                continue
            if not known.tells(mask, above) and thread_time() >= ends:
                return
            size, probe = known.size(mask)
            gross, each = fed * (float(leaving[union]) - probe) - fixed, float(leaving[union]) + problem.passing
            siblings.groups[union] = known.groups(mask)
            if gross - known.groups(mask) * each <= worst:
                continue
            entries, fixed_part, slopes, bottom = known.curve(mask, above).points
            passed = np.maximum(fixed_part + slopes * fed, bottom) * each + tree.price * size * entries
            saved = gross - float(passed[entries * size <= problem.memory].min())
            if saved > worst:
                floor = sorted((*floor, saved), reverse=True)[:tries]
                worst = min(floor) if len(floor) == tries else 0.0
                yield Move(saved, mask, parent, STREAM)

    def _promising(self, siblings: Siblings, gains: Array, weights: Array, worst: float) -> NDArray[np.intp]:
        """Unions to look at that may save more than `worst`, by what they save at most: all whose groups are known, and
        as many others as may be asked for, by what they seem to save."""
        groups = np.array([self.known.groups(self.tree.masks[child]) for child in siblings.children])
        asked = ~np.isnan(siblings.groups)
        least = np.where(asked, siblings.groups, np.where(siblings.adopts, groups, 0.0).max(axis=1, initial=1.0))
        bounds = gains - least * weights
        known = np.flatnonzero(asked & (bounds > worst))
        others = np.flatnonzero(~asked & (bounds > worst))
        guessed = np.maximum(self.known.guess(siblings.bits[others]), least[others])
        others = others[np.argsort(guessed * weights[others] - gains[others], kind="stable")]
        return np.concatenate([known[np.argsort(-bounds[known], kind="stable")], others[: self.lookups]])
