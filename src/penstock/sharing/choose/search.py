"""Prices sets of phantoms fast: the inner loop of `choice`; and what a chooser hands back (`Choice`).

A set is an integer with a bit for every relation of the feeding graph that feeds others.  From it follow the forest
(each relation under its best feeder), the planted tree, the spaces and the cost; statistics are asked once per
relation and depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.sharing.allocate.registry import Allocator, allocator
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.graph.feeding_graph import candidates, consistent, feeding_graph
from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.figures import PlantedTree, curves_of
from penstock.sharing.model.flow import tuple_cost
from penstock.sharing.model.problem import Problem

# The cost of a planted tree with given buckets: what a choice makes least.
Objective = Callable[[PlantedTree, Sequence[float]], float]


@dataclass(frozen=True)
class Step:
    """One phantom added (None: the start, without any) or, in a tree, deleted, and the cost after it."""

    added: Grain | None
    cost: float


@dataclass(frozen=True)
class ChosenTables:
    """A configuration, the space of each of its nodes (0: no table), its cost per record, and how it was found."""

    configuration: Configuration
    spaces: tuple[float, ...]
    cost: float
    steps: tuple[Step, ...]


class RelationForest(NamedTuple):
    """Relations by number, feeders first, and the number of what feeds each (`STREAM`: none)."""

    feeding: int
    relations: list[int]
    parents: list[int]


class Search:
    """A problem with its feeding graph; relations that pass on fewer groups are preferred as parents.

    Collision rates are not known before memory is allocated, which needs the forest; the number of groups is what
    decides them in the end.  `choice` tries the rates themselves on the forest it found.

    With `fronts=False` a query has a table only where it feeds others, and so may be chosen like a phantom.
    """

    def __init__(
        self,
        problem: Problem,
        alloc: str = "sl",
        *,
        fronts: bool = True,
        objective: Objective = tuple_cost,
        phantoms: Iterable[Grain] | None = None,
    ) -> None:
        possible = candidates(problem.queries) if phantoms is None else phantoms
        groups = {grain: problem.groups(grain) for grain in (*problem.queries, *possible)}
        self.problem = problem
        self.graph = feeding_graph(groups, consistent(groups).__getitem__)
        self.fronts = fronts
        self.allocator: Allocator = allocator(alloc)
        self.objective = objective
        self.queries = self.graph.mask(problem.queries)
        relations = self.graph.relations
        self.wanted = [bool(self.queries >> n & 1) for n in range(len(relations))]
        # Children that a relation must feed to be worth its table.
        self.least = [(0 if fronts else 1) if wanted else 2 for wanted in self.wanted]
        self.groups = [float(groups[grain]) for grain in relations]
        self.entries = [float(problem.entry(grain)) for grain in relations]
        self.probe = [float(problem.probe(grain)) for grain in relations]
        self.evict = [
            float(problem.evict(grain)) if wanted else 0.0 for grain, wanted in zip(relations, self.wanted, strict=True)
        ]
        self._lengths: list[list[float]] = [[0.0] for _ in relations]  # by relation and depth; none has depth 0

    @property
    def start(self) -> int:
        """No phantoms: what feeds before any is chosen."""
        return self.queries if self.fronts else 0

    @property
    def choosable(self) -> list[int]:
        """Relations that may be added: candidates and, where they have no tables of their own, queries."""
        return [n for n in range(len(self.wanted)) if not (self.fronts and self.wanted[n])]

    def forest(self, feeding: int) -> RelationForest:
        feeders, chosen = self.graph.feeders, self.queries | feeding
        relations = [n for n in self.graph.order if chosen >> n & 1]
        # The lowest bit is the best parent, as in `configuration.best_parent`; none gives −1, the stream.
        parents = [((possible := feeders[n] & feeding) & -possible).bit_length() - 1 for n in relations]
        return RelationForest(feeding, relations, parents)

    def pruned(self, feeding: int) -> RelationForest:
        """The forest without phantoms that feed fewer than two: they cost a probe and save none (Sec. 2.6).

        A query that is chosen to feed counts for one of the two itself.
        """
        while True:
            forest = self.forest(feeding)
            fed = [0] * (len(self.wanted) + 1)
            for parent in forest.parents:
                fed[parent] += 1
            idle = [n for n in forest.relations if feeding >> n & 1 and fed[n] < self.least[n]]
            if not idle:
                return forest
            feeding &= ~(1 << idle[-1])  # the coarsest: its children may save what stands above

    def tree(self, forest: RelationForest) -> PlantedTree:
        feeding, relations, numbers = forest
        places = {STREAM: STREAM}
        places.update(zip(relations, range(len(relations)), strict=True))
        grains, parents = [*map(self.graph.relations.__getitem__, relations)], [*map(places.__getitem__, numbers)]
        tables = [True] * len(relations) if self.fronts else [bool(feeding >> n & 1) for n in relations]
        return PlantedTree(
            parents=parents,
            queries=[*map(self.wanted.__getitem__, relations)],
            tables=tables,
            groups=[*map(self.groups.__getitem__, relations)],
            lengths=self._lengths_of(relations, parents),
            entries=[*map(self.entries.__getitem__, relations)],
            probe=[*map(self.probe.__getitem__, relations)],
            evict=[*map(self.evict.__getitem__, relations)],
            memory=self.problem.memory,
            rows=self.problem.rows,
            curves=curves_of(self.problem, grains, parents, tables),
            passing=self.problem.passing,
            each=self.problem.each,
            grains=grains,
        )

    def _lengths_of(self, relations: list[int], parents: list[int]) -> list[float]:
        depths: list[int] = []
        lengths = []
        for n, parent in zip(relations, parents, strict=True):
            depth = 1 if parent == STREAM else depths[parent] + 1
            depths.append(depth)
            known = self._lengths[n]
            while len(known) <= depth:
                known.append(self.problem.length(self.graph.relations[n], len(known)))
            lengths.append(known[depth])
        return lengths

    def price(self, forest: RelationForest) -> float:
        """The cost with all memory allocated."""
        tree = self.tree(forest)
        spaces = self.allocator(tree)
        return self.objective(tree, [space / entry for space, entry in zip(spaces, tree.entries, strict=True)])
