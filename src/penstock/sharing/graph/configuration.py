"""Configurations: which relations are kept and which feeds which (seed smap, Sec. 3.1).

A configuration is a forest: raw relations are fed by the stream, every other by one relation that is finer.
Queries are what users asked for, the rest are phantoms.  `arrange` makes one from a choice of phantoms, `notation`
writes it as text, `sharing.model` prices it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from penstock.sharing.graph.feeding_graph import FeedingGraph, feeding_graph
from penstock.sharing.graph.grain import Grain

STREAM = -1


@dataclass(frozen=True)
class Node:
    """One relation: its parent's place among the nodes (`STREAM`: fed by the stream), and whether it is a query."""

    grain: Grain
    parent: int
    query: bool


@dataclass(frozen=True)
class Configuration:
    """Nodes, parents before their children."""

    nodes: tuple[Node, ...]

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        fed: list[list[int]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            if node.parent != STREAM:
                fed[node.parent].append(i)
        return tuple(tuple(children) for children in fed)

    @property
    def roots(self) -> tuple[int, ...]:
        """The raw relations W."""
        return tuple(i for i, node in enumerate(self.nodes) if node.parent == STREAM)

    @property
    def leaves(self) -> tuple[int, ...]:
        """The relations L that feed no other."""
        return tuple(i for i, children in enumerate(self._children) if not children)

    @property
    def queries(self) -> tuple[Grain, ...]:
        return tuple(node.grain for node in self.nodes if node.query)

    @property
    def phantoms(self) -> tuple[Grain, ...]:
        return tuple(node.grain for node in self.nodes if not node.query)

    @property
    def edges(self) -> frozenset[tuple[Grain, Grain | None]]:
        """(relation, what feeds it): the same for configurations that differ in the order of nodes only."""
        return frozenset(
            (node.grain, None if node.parent == STREAM else self.nodes[node.parent].grain) for node in self.nodes
        )

    def children(self, i: int) -> tuple[int, ...]:
        return self._children[i]

    def ancestors(self, i: int) -> tuple[int, ...]:
        """A_R, the nearest first."""
        found = []
        while (i := self.nodes[i].parent) != STREAM:
            found.append(i)
        return tuple(found)

    def depth(self, i: int) -> int:
        """1 for a raw relation."""
        return 1 + len(self.ancestors(i))

    def below(self, i: int) -> tuple[int, ...]:
        """i and its descendants, parents first."""
        found = [i]
        for j in found:
            found.extend(self._children[j])
        return tuple(sorted(found))

    def index(self, grain: Grain) -> int:
        return next(i for i, node in enumerate(self.nodes) if node.grain == grain)


def arrange(
    queries: Iterable[Grain],
    phantoms: Iterable[Grain],
    passes: Callable[[Grain], float],
    *,
    queries_feed: bool = True,
) -> Configuration:
    """The forest of these relations: each is fed by the chosen superset that passes on the fewest records.

    A query feeds other queries, too; with `queries_feed=False` only those that are named among the phantoms as well.
    """
    queries, phantoms = list(queries), list(phantoms)
    graph = feeding_graph([*queries, *phantoms], passes)
    wanted = graph.mask(queries)
    feeding = graph.mask([*queries, *phantoms] if queries_feed else phantoms)
    return arranged(graph, wanted, feeding)


def best_parent(graph: FeedingGraph, relation: int, feeding: int) -> int:
    """The first of the relations `feeding` that feeds this one; `STREAM` if none does."""
    possible = graph.feeders[relation] & feeding
    return (possible & -possible).bit_length() - 1


def arranged(graph: FeedingGraph, queries: int, feeding: int) -> Configuration:
    """The configuration of these queries and of whatever feeds, given as bits of the graph's relations."""
    chosen = [relation for relation in graph.order if (queries | feeding) >> relation & 1]
    fed: dict[int, list[int]] = {relation: [] for relation in (STREAM, *chosen)}
    for relation in chosen:
        fed[best_parent(graph, relation, feeding)].append(relation)
    nodes: list[Node] = []

    def plant(relation: int, parent: int) -> None:
        nodes.append(Node(graph.relations[relation], parent, bool(queries >> relation & 1)))
        place = len(nodes) - 1
        for child in sorted(fed[relation], key=lambda number: sorted(graph.relations[number])):
            plant(child, place)

    for root in sorted(fed[STREAM], key=lambda number: sorted(graph.relations[number])):
        plant(root, STREAM)
    return Configuration(tuple(nodes))
