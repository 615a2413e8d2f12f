"""A tree that is being built: relations, who feeds whom, memory and costs (the working state of `aggregate_tree`).

Masks stand for grains (`feeding_graph.encode`), numbers for nodes; the stream is `STREAM`.  A query has a table only
while it feeds others.  Statistics are asked once for each relation, and only when something depends on them.

With what flows held fast, everything is linear: `marginal[x]` is what one more record costs at x and below it, so moves
are judged by a few sums, without allocating memory for each.  `solve` then allocates and finds what really flows.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.allocate.registry import Allocator
from penstock.sharing.choose.search import Objective
from penstock.sharing.choose.siblings import packed, unpacked
from penstock.sharing.graph.configuration import STREAM, Configuration, Node
from penstock.sharing.graph.feeding_graph import decoder, encode
from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.eviction import Curve, DirectMapped
from penstock.sharing.model.figures import PlantedTree, buckets_of, plant, responses
from penstock.sharing.model.problem import Problem

Array = NDArray[np.float64]

ROUNDS = 3  # of allocation at a price, each with the flows of the one before
HALVINGS = 24  # of the interval of prices


class KnownRelations:
    """Statistics of relations by mask, each asked for once."""

    def __init__(self, problem: Problem) -> None:
        codes = encode(problem.queries)
        self.problem = problem
        self.queries = {code: grain for grain, code in codes.items()}
        self.numbers = count(len(codes))  # of nodes, never twice: what is known of siblings goes by them
        self._decode: Callable[[int], Grain] = decoder(codes)
        self._grains: dict[int, Grain] = dict(self.queries)
        self._groups: dict[int, float] = {}
        self._fitted = 0
        self._factors: NDArray[np.floating] = np.empty(0)
        self._curves: dict[tuple[int, int], Curve] = {}
        self._sizes: dict[int, tuple[float, float]] = {}

    def grain(self, mask: int) -> Grain:
        if mask not in self._grains:
            self._grains[mask] = self._decode(mask)
        return self._grains[mask]

    def groups(self, mask: int) -> float:
        if mask not in self._groups:
            self._groups[mask] = float(self.problem.groups(self.grain(mask)))
        return self._groups[mask]

    def guess(self, bits: NDArray[np.bool_]) -> Array:
        """Groups of relations that have not been asked for (a row of bits each), from those that have.

        As if each bit multiplied the groups by a factor of its own, fitted to what is known, up to as many as there
        are records: good enough to say where to look first.
        """
        rows, width = float(self.problem.rows), bits.shape[1]
        if len(self._groups) > 1.2 * self._fitted:
            self._fitted = len(self._groups)
            few = {mask: groups for mask, groups in self._groups.items() if groups < 0.5 * rows} or self._groups
            there = unpacked(packed(few, -(-width // 64)))[:, :width].astype(np.float64)
            pull = 0.01 * np.eye(width)  # bits that never differ have no factor of their own
            self._factors = np.linalg.solve(there.T @ there + pull, there.T @ np.log(list(few.values())))
        powers = np.minimum(bits @ self._factors, 700.0)
        return np.asarray(-rows * np.expm1(-np.exp(powers) / rows), np.float64)

    def curve(self, mask: int, above: int) -> Curve:
        """Of a table below another one, or the stream (0)."""
        if (mask, above) not in self._curves:
            grain = self.grain(mask)
            made = None
            if self.problem.curve is not None:
                made = self.problem.curve(grain, self.grain(above) if above else None)
            if made is None:  # how deep it will stand is not known yet; flows are long below the stream only
                made = DirectMapped(self.groups(mask), self.problem.length(grain, 2 if above else 1))
            self._curves[mask, above] = made
        return self._curves[mask, above]

    def tells(self, mask: int, above: int) -> bool:
        """Whether this curve is there already."""
        return (mask, above) in self._curves

    def size(self, mask: int) -> tuple[float, float]:
        """(memory of an entry, cost of a probe)."""
        if mask not in self._sizes:
            grain = self.grain(mask)
            self._sizes[mask] = float(self.problem.entry(grain)), float(self.problem.probe(grain))
        return self._sizes[mask]


class GrowingTree:
    """The tree; `solve` brings `out`, `buckets`, `marginal`, `price` and `cost` up to date."""

    def __init__(self, known: KnownRelations, allocator: Allocator | None, objective: Objective) -> None:
        """Without an allocator, memory goes by its price."""
        self.known, self.problem = known, known.problem
        self.allocator, self.objective = allocator, objective
        self.masks: dict[int, int] = dict(enumerate(known.queries))
        self.parents = dict.fromkeys(self.masks, STREAM)
        self.tables: set[int] = set()
        self.numbers = {mask: number for number, mask in self.masks.items()}
        self.evict = {n: float(self.problem.evict(known.grain(mask))) for n, mask in self.masks.items()}
        self.queries = frozenset(self.masks)
        self.buckets: dict[int, float] = {}
        self.out: dict[int, float] = {}
        self.marginal: dict[int, float] = {}
        self.price = 0.0
        self.cost = 0.0

    def copy(self) -> GrowingTree:
        other = GrowingTree.__new__(GrowingTree)
        other.__dict__.update(self.__dict__)
        for name in ("masks", "parents", "numbers", "evict", "buckets", "out", "marginal"):
            setattr(other, name, dict(getattr(self, name)))
        other.tables = set(self.tables)
        return other

    def children(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {STREAM: [], **{number: [] for number in self.tables}}
        for number, parent in self.parents.items():
            found[parent].append(number)
        return found

    def fed(self, number: int) -> float:
        """Records that a node passes to each of its children."""
        return float(self.problem.rows) if number == STREAM else self.out[number]

    def place(self, mask: int, parent: int, adopted: list[int]) -> None:
        """A table for this relation below `parent`, feeding these."""
        number = self.numbers.get(mask)
        if number is None:
            number = next(self.known.numbers)
            self.masks[number], self.numbers[mask], self.evict[number] = mask, number, 0.0
        self.parents[number] = parent
        self.tables.add(number)
        for child in adopted:
            if child != number:
                self.parents[child] = number

    def replant(self, before: Configuration) -> None:
        """The tables of an earlier tree for these queries, or most of them; what fed none of them is left out."""
        codes = {grain: mask for mask, grain in self.known.queries.items()}
        masks = [codes.get(node.grain, 0) for node in before.nodes]
        for i in reversed(range(len(masks))):
            if before.nodes[i].parent != STREAM:
                masks[before.nodes[i].parent] |= masks[i]
        feeding = {node.parent for node in before.nodes}
        place: list[int] = []  # the table that takes what falls to a node
        for i, node in enumerate(before.nodes):
            parent = STREAM if node.parent == STREAM else place[node.parent]
            if i in feeding and masks[i] and (parent == STREAM or self.masks[parent] != masks[i]):
                self.place(masks[i], parent, [])
                parent = self.numbers[masks[i]]
            elif node.grain in codes and self.numbers[masks[i]] != parent:  # else it took its only feeder's place
                self.parents[self.numbers[masks[i]]] = parent
            place.append(parent)

    def remove(self, number: int) -> None:
        """A table goes; a query stays as a leaf."""
        for child, parent in self.parents.items():
            if parent == number:
                self.parents[child] = self.parents[number]
        self.tables.discard(number)
        self.buckets.pop(number, None)
        if number not in self.queries:
            del self.numbers[self.masks[number]]
            del self.masks[number], self.parents[number], self.evict[number]

    def hang(self) -> bool:
        """Every node below the table that passes on the least of all that can feed it; whether any moved."""
        moved = False
        feeding = sorted((self.out[n], self.masks[n].bit_count(), n) for n in self.tables)
        for number, mask in self.masks.items():
            here = self.fed(self.parents[number])
            for out, _, feeder in feeding:
                if out >= here * (1.0 - 1e-9):
                    break
                wide = self.masks[feeder]
                if wide & mask == mask and wide != mask:
                    self.parents[number], moved = feeder, True
                    break
        return moved

    def order(self) -> list[int]:
        """Tables, feeders first."""
        return sorted(self.tables, key=lambda number: -self.masks[number].bit_count())

    def settle(self) -> None:
        """Solve, hang all where they belong, and solve again if that has moved any."""
        self.solve()
        if self.hang():
            self.solve()

    def solve(self) -> None:
        if self.allocator is None:
            self._by_price()
        configuration, numbers = self.configuration()
        tree = plant(configuration, self.problem, [n in self.tables for n in numbers])
        if self.allocator is not None:
            buckets = buckets_of(tree, self.allocator(tree))
            self.buckets = {n: b for n, b in zip(numbers, buckets, strict=True) if n in self.tables}
        self._flow(tree, numbers)

    def _flow(self, tree: PlantedTree, numbers: list[int]) -> None:
        buckets = [self.buckets.get(n, 0.0) for n in numbers]
        passed = responses(tree, buckets)
        slopes: dict[int, float] = {}
        for n, (entries, slope) in zip(numbers, passed, strict=True):
            self.out[n] = entries + slope * self.fed(self.parents[n])
            slopes[n] = slope
        self._marginals(slopes)
        self.cost = self.objective(tree, buckets)
        if self.allocator is not None:
            self.price = self._worth()

    def _marginals(self, slopes: dict[int, float]) -> None:
        leaving = {n: self.problem.passing + self.evict[n] for n in self.tables}
        for n, parent in self.parents.items():
            if n not in self.tables:
                self.marginal[n] = self.evict[n]
                if parent != STREAM:
                    leaving[parent] += self.evict[n]
        for n in reversed(self.order()):
            self.marginal[n] = self.known.size(self.masks[n])[1] + slopes[n] * leaving[n]
            if self.parents[n] != STREAM:
                leaving[self.parents[n]] += self.marginal[n]
        self.leaving = leaving

    def _worth(self) -> float:
        """What a unit of memory saves where it saves least, by a tenth of each table."""
        found = []
        for n in self.tables:
            response, b, fed = self._curve(n), self.buckets[n], self.fed(self.parents[n])
            if 1.0 < b < response.most:
                saved = response.out(0.9 * b, fed) - response.out(b, fed)
                found.append(max(0.0, saved) * self.leaving[n] / (0.1 * b * self.known.size(self.masks[n])[0]))
        return min(found, default=0.0)

    def _curve(self, n: int) -> Curve:
        parent = self.parents[n]
        return self.known.curve(self.masks[n], 0 if parent == STREAM else self.masks[parent])

    def _by_price(self) -> None:
        """Buckets of all tables at the price at which the memory is just used up, by the flows of the last round."""
        tables = self.order()
        if not tables:
            self.price = 0.0
            return
        points = [self._curve(n).points for n in tables]
        width = max(len(each[0]) for each in points)
        entries, fixed, slopes = (
            np.array([np.pad(row, (0, width - len(row)), mode="edge") for row in rows])
            for rows in ([each[0] for each in points], [each[1] for each in points], [each[2] for each in points])
        )
        floors = np.array([each[3] for each in points])
        needs = entries * np.array([self.known.size(self.masks[n])[0] for n in tables])[:, None]
        for n in tables:  # a new one starts as if it kept all
            self.out.setdefault(n, min(self.known.groups(self.masks[n]), self.fed(self.parents[n])))
        place = np.arange(len(tables))
        chosen = np.full(len(tables), width - 1)
        for _ in range(ROUNDS):
            self._marginals({n: float(slopes[k, chosen[k]]) for k, n in enumerate(tables)})
            fed = np.array([self.fed(self.parents[n]) for n in tables])
            weights = np.array([self.leaving[n] for n in tables])
            costs = np.maximum(fixed + slopes * fed[:, None], floors[:, None]) * weights[:, None]
            self.price, chosen = _cheapest(costs, needs, self.problem.memory)
            for k, n in enumerate(tables):
                self.buckets[n] = float(entries[k, chosen[k]])
                self.out[n] = self._curve(n).out(self.buckets[n], self.fed(self.parents[n]))
        left = self.problem.memory - float(needs[place, chosen].sum())
        self._spend(left, tables, chosen, costs, needs)

    def _spend(self, left: float, tables: list[int], chosen: NDArray[np.intp], costs: Array, needs: Array) -> None:
        """What is left over, to the tables that would take the next step at the lowest price."""
        rises = {}
        for k, n in enumerate(tables):
            later = slice(int(chosen[k]) + 1, None)
            steps, saved = needs[k, later] - needs[k, chosen[k]], costs[k, chosen[k]] - costs[k, later]
            if (steps > 0).any():
                rises[n] = float(np.max(saved[steps > 0] / steps[steps > 0]))
        for n in sorted(rises, key=rises.__getitem__, reverse=True):
            if left <= 0.0 or rises[n] <= 0.0:
                break
            size = self.known.size(self.masks[n])[0]
            more = min(left / size, max(0.0, self._curve(n).most - self.buckets[n]))
            self.buckets[n] += more
            left -= more * size

    def configuration(self) -> tuple[Configuration, list[int]]:
        """As the rest of the planner has it, and the number of each of its nodes."""
        fed = self.children()
        nodes: list[Node] = []
        numbers: list[int] = []

        def hang(number: int, parent: int) -> None:
            nodes.append(Node(self.known.grain(self.masks[number]), parent, number in self.queries))
            numbers.append(number)
            place = len(nodes) - 1
            for child in sorted(fed.get(number, ()), key=self.masks.__getitem__):
                hang(child, place)

        for root in sorted(fed[STREAM], key=self.masks.__getitem__):
            hang(root, STREAM)
        return Configuration(tuple(nodes)), numbers


def _cheapest(costs: Array, needs: Array, memory: float) -> tuple[float, NDArray[np.intp]]:
    """The price of memory at which the points of least cost + price · need together need no more than there is."""
    fitting = np.where(needs <= memory * (1.0 + 1e-9), costs, np.inf)
    place = np.arange(len(costs))
    chosen = fitting.argmin(axis=1)
    if needs[place, chosen].sum() <= memory:
        return 0.0, chosen
    low, high = 0.0, 1.0 + float(costs.sum()) / max(memory, 1e-9)
    found = high, (fitting + high * needs).argmin(axis=1)
    low = high * 1e-12
    for _ in range(HALVINGS):
        price = (low * high) ** 0.5
        chosen = (fitting + price * needs).argmin(axis=1)
        if needs[place, chosen].sum() <= memory:
            high, found = price, (price, chosen)
        else:
            low = price
    return found
