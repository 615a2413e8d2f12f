"""The problem of the engine: the queries of one stream, what is known of it, and what tables cost on this machine.

    relations ──► lattice ──► EngineProblem (statistics, unit costs) ──► Problem, PlantedTree ──► sharing.choose

Costs are in nanoseconds. A chooser gets a `Problem` with tables of one kind (`kinds`). In a tree of several kinds each
node has the figures of the problem of its kind (`planted`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from penstock.aggregates.base import State
from penstock.aggregates.registry import planned_words
from penstock.logical.types import Kind
from penstock.relations.relation import EXACT, Relation
from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.graph.grain import Grain, feeds
from penstock.sharing.graph.lattice import Lattice
from penstock.sharing.model.eviction import Curve, DirectMapped, in_turns
from penstock.sharing.model.figures import PlantedTree, buckets_of, given, plant
from penstock.sharing.model.flow import flush_bound, tree_cost
from penstock.sharing.model.kinds.direct import DIRECT
from penstock.sharing.model.kinds.kind import TableKind
from penstock.sharing.model.problem import Problem
from penstock.sharing.model.statistics import Statistics
from penstock.sharing.model.unit_costs import Costs

States = frozenset[tuple[State, Kind, bool]]  # with the kind of its column, and whether that may be NULL
EACH = 0.5  # ns a record of the stream for one more table, whatever little reaches it: calls for each chunk
LEAST = 0.1  # ns of whatever is done with a record: costs that are fitted one by one may say less than nothing
DOUBT = 4.0  # times as many groups as expected that a limit on flushes holds for (`runtime.profile.survey`)
INDEX = 12  # bytes of an exact table's index for each of its groups, half way between two doublings


@dataclass(frozen=True)
class EngineProblem:
    """The queries of one stream with all that is known, and the memory for their tables."""

    relations: tuple[Relation, ...]
    net: Lattice
    known: Statistics
    costs: Costs
    memory: float
    # Figures that do not depend on the memory, once each, also where it is replaced.
    _sizes: dict[Grain, tuple[int, int]] = field(default_factory=dict)  # words of key and states
    _shares: dict[Grain, float] = field(default_factory=dict)
    _inserts: dict[Grain, float] = field(default_factory=dict)
    _curves: dict[tuple[TableKind, Grain, Grain | None], Curve | None] = field(default_factory=dict)

    @cached_property
    def queries(self) -> dict[Grain, tuple[str, ...]]:
        """Queries that have the same groups are one relation."""
        found: dict[Grain, tuple[str, ...]] = {}
        for query, grain in self.net.grains.items():
            found[grain] = (*found.get(grain, ()), query)
        return found

    @cached_property
    def bulk(self) -> float:
        """Bytes of all leaves: they take turns, and each finds the caches full of the others."""
        return sum(
            self.known.groups(grain) * (self.size(grain) + INDEX) * len(names) for grain, names in self.queries.items()
        )

    def words(self, grain: Grain) -> int:
        """Of the key."""
        return self._size(grain)[0]

    def kept(self, grain: Grain) -> int:
        """Words of states that a table of this grain keeps: those of all that it can feed."""
        return self._size(grain)[1]

    def _size(self, grain: Grain) -> tuple[int, int]:
        if grain not in self._sizes:
            # Many queries keep the same: one of them that is fed is enough.
            needed = [kept for kept, wanting in self._alike.items() if any(feeds(grain, coarse) for coarse in wanting)]
            self._sizes[grain] = max(1, -(-self.known.bits(grain) // 64)), _words_of(needed)
        return self._sizes[grain]

    def state_words(self, queries: Sequence[str]) -> int:
        return _words_of([self._states[query] for query in queries])

    @cached_property
    def _tables(self) -> dict[str, str]:
        return {relation.name: relation.table for relation in self.relations}

    @cached_property
    def _states(self) -> dict[str, States]:
        return {
            r.name: frozenset((s, r.types[s.column].kind, s.column in r.lacking) for s in r.states)
            for r in self.relations
        }

    @cached_property
    def _alike(self) -> dict[States, list[Grain]]:
        """Grains of the queries, by what they keep."""
        found: dict[States, list[Grain]] = {}
        for query, grain in self.net.grains.items():
            found.setdefault(self._states[query], []).append(grain)
        return found

    def size(self, grain: Grain, kind: TableKind = DIRECT) -> float:
        """Bytes of an entry."""
        return 8.0 * (self.words(grain) + 1 + self.kept(grain)) + kind.links

    def probing(self, grain: Grain, kind: TableKind = DIRECT) -> float:
        """Nanoseconds of a probe."""
        each = kind.probe(self.costs, self.memory) + self.costs.word * (self.words(grain) - 2)
        return max(LEAST, each + self.costs.fold * self.kept(grain))

    def inserting(self, grain: Grain, doubt: float = 1.0) -> float:
        """Nanoseconds of an insert into the leaves of a query and those that have the same groups, where there are
        `doubt` times as many as expected."""
        names = self.queries[grain]
        looked_up = sum(self._tables[name] == EXACT for name in names)
        own = self.known.groups(grain) * (self.size(grain) + INDEX)
        each = self.costs.insert_at(doubt * self.bulk, doubt * own) * looked_up
        each += self.costs.appended * (len(names) - looked_up)
        each += self.costs.word * (self.words(grain) - 2) * len(names)
        return max(LEAST, each + self.costs.fold * sum(self.state_words([name]) for name in names))

    def share(self, grain: Grain) -> float:
        """Of the records, those that the relation takes."""
        if grain not in self._shares:
            self._shares[grain] = self.known.share(grain)
        return self._shares[grain]

    def problem(self, kind: TableKind = DIRECT) -> Problem:
        """With tables of this kind."""
        known = self.known

        @cache
        def probe(grain: Grain) -> float:
            return self.share(grain) * self.probing(grain, kind)

        def insert(grain: Grain) -> float:
            if grain not in self._inserts:
                self._inserts[grain] = self.share(grain) * self.inserting(grain)
            return self._inserts[grain]

        @cache
        def entry(grain: Grain) -> float:
            return self.size(grain, kind)

        return Problem(
            tuple(self.queries), known.rows, self.memory, known.groups, entry, known.length, probe, insert,
            curve=self._curves_of(kind), passing=self.costs.passing, each=EACH,
        )  # fmt: skip

    def operations(self, kind: TableKind) -> Problem:
        """The same in hash operations, the cost of seed aggregate-tree (Eq. 2): a probe is one, whatever the table."""
        queries = self.queries

        def insert(grain: Grain) -> float:
            return self.share(grain) * len(queries[grain])

        return replace(self.problem(kind), probe=self.share, evict=insert, passing=0.0, each=0.0)

    def _curves_of(self, kind: TableKind) -> Callable[[Grain, Grain | None], Curve | None] | None:
        """How tables of this kind respond below a feeder, each made once; of direct-mapped ones only where the groups
        of a task come in turns."""
        make = self._colliding if kind.curve is None else kind.curve
        if kind.curve is None and not any(self.known.turns(grain) > 1.0 for grain in self.queries):
            return None

        def curve(grain: Grain, feeder: Grain | None) -> Curve | None:
            if (kind, grain, feeder) not in self._curves:
                self._curves[kind, grain, feeder] = make(self.known, grain, feeder, self.share(grain))
            return self._curves[kind, grain, feeder]

        return curve

    @staticmethod
    def _colliding(known: Statistics, grain: Grain, feeder: Grain | None, share: float) -> Curve | None:
        """Of a direct-mapped table, if groups come in turns; flows are long below the stream only. As `figures` has it
        without turns, it is told of the records that it takes."""
        turns = known.turns(grain)
        if turns <= 1.0:
            return None
        return in_turns(DirectMapped(known.groups(grain) / turns, known.length(grain, 2 if feeder else 1)), turns)

    def planted(self, configuration: Configuration, spaces: Sequence[float], kinds: Sequence[TableKind]) -> PlantedTree:
        """A tree whose nodes have tables of these kinds, where they have space for an entry."""
        tables = [space > 0.0 for space in spaces]
        trees = {kind: plant(configuration, self.problem(kind), tables) for kind in dict.fromkeys(kinds)}
        tree = next(iter(trees.values()))
        if len(trees) > 1:
            chosen = [trees[kind] for kind in kinds]
            tree = tree._replace(
                entries=[one.entries[i] for i, one in enumerate(chosen)],
                probe=[one.probe[i] for i, one in enumerate(chosen)],
                curves=[one.curves[i] if one.curves else None for i, one in enumerate(chosen)],
            )
        return given(tree, whole_buckets(tree, spaces))

    def price(self, configuration: Configuration, spaces: Sequence[float], kinds: Sequence[TableKind]) -> float:
        """Nanoseconds of a record, with its part of the end of the task."""
        tree = self.filled(configuration, spaces, kinds).planted(configuration, spaces, kinds)
        return tree_cost(tree, whole_buckets(tree, spaces))

    def filled(
        self, configuration: Configuration, spaces: Sequence[float], kinds: Sequence[TableKind]
    ) -> EngineProblem:
        """The same with the memory that these tables work on, which makes them cost what they do."""
        needs = [
            kind.touched(space, self.known.groups(node.grain) * self.size(node.grain, kind))
            for node, space, kind in zip(configuration.nodes, spaces, kinds, strict=True)
        ]
        return replace(self, memory=sum(needs))

    def peak(self, configuration: Configuration, kinds: Sequence[TableKind]) -> Callable[[Sequence[float]], float]:
        """The most nanoseconds that the end of a task takes with tables of these spaces."""
        nodes = configuration.nodes
        tree = plant(configuration, self.problem())._replace(
            probe=[self.probing(node.grain, kind) for node, kind in zip(nodes, kinds, strict=True)],
            evict=[self.inserting(node.grain, DOUBT) if node.query else 0.0 for node in nodes],
        )
        sizes = [self.size(node.grain, kind) for node, kind in zip(nodes, kinds, strict=True)]

        def load(spaces: Sequence[float]) -> float:
            buckets = [float(int(space / size)) for size, space in zip(sizes, spaces, strict=True)]
            return flush_bound(tree, buckets, self.costs.passing, DOUBT)

        return load


def whole_buckets(tree: PlantedTree, spaces: Sequence[float]) -> list[float]:
    return [float(int(b)) for b in buckets_of(tree, spaces)]


def _words_of(kept: Sequence[States]) -> int:
    return sum(planned_words(*one) for one in frozenset[tuple[State, Kind, bool]]().union(*kept))
