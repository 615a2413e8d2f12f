"""Which relations are stored as one: chosen by what their records cost from the leaf to the results.

    relations by rule ──► partitions into unions, priced roughly ──► plans of the best ones ──► the cheapest whole way

Stored by itself a relation costs a probe for each record, and its way behind the leaf for each partial group
(`sharing.model.unit_costs`). Stored in a union it costs neither: the union does, once for all, and each of its rows is
rolled up once for each query (`runtime.merge.rolling`), which looks nothing up. So many queries of many groups share a
union well; a few queries of few groups do better alone. A union whose groups hardly repeat is appended, row by row.
Windows that overlap are rolled up again by each batch that closes one of them, and a union has the shortest panes of
all its queries, so more rows.

Partitions are priced without tables before the leaves; for the best of them `sharing.planner` plans tables, and the
cheapest whole is taken. What is the same for all, finishing and sinks, is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from penstock.logical.expressions import Prefix
from penstock.logical.query import Stream
from penstock.logical.window import Panes, Window
from penstock.relations.relation import APPEND, EXACT, Relation
from penstock.relations.storing import Stored
from penstock.relations.uniting import Union, finest, shortest, unitable, united
from penstock.sharing.graph.grain import Grain, union
from penstock.sharing.graph.lattice import lattice
from penstock.sharing.model.closings import windows_of
from penstock.sharing.model.partial_groups import (
    Behind,
    Made,
    Pace,
    behind,
    columns_of,
    grouping,
    handed,
    merged_for,
    read_for,
    rolling,
    words_of,
)
from penstock.sharing.model.statistics import Statistics
from penstock.sharing.model.unit_costs import Costs
from penstock.sharing.options import EACH, ONE, ROWS

MOST_MERGED = 24  # relations up to which all pairs are tried
SPLITS = 8  # places at which more of them are cut in two, by their groups
KEY_BYTES, STATE_BYTES = 8, 8
PROBE_BYTES = 16.0  # of a leaf's row besides: its count and its part of the index


@dataclass(frozen=True)
class Pricing:
    """What is known for a price: grains of relations, the windows of their queries, statistics by grain, unit costs."""

    grains: dict[str, Grain]
    windows: dict[str, tuple[Window, ...]]
    known: Statistics
    costs: Costs
    _alone: dict[str, float] = field(default_factory=dict, repr=False, compare=False)
    _made: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def groups(self, names: Iterable[str]) -> float:
        """Of a task, for each of its records."""
        return min(1.0, self.known.groups(union(*(self.grains[name] for name in names))) / max(1.0, self.known.rows))

    def alone(self, relation: Relation) -> float:
        """Nanoseconds a record of a relation that is stored by itself."""
        if relation.name not in self._alone:
            self._alone[relation.name] = self._by_itself(relation)
        return self._alone[relation.name]

    def _by_itself(self, relation: Relation) -> float:
        rows, columns = self.groups([relation.name]), columns_of(relation)
        merged = merged_for(self.windows[relation.name])
        way = self.costs.merge if merged <= 1.0 else self.costs.overlapping
        each = self.costs.fresh + self.costs.segment.of(columns) + way.of(columns) * merged
        merging = self.costs.merging * self.closings(relation) / max(1.0, self.known.rows)
        return self.insert(rows, columns) + rows * each + self.block + merging

    def closings(self, relation: Relation) -> float:
        """In how many items its windows close, for each task: in one, if that many do."""
        moved, tasks = self.moved([relation]), self.known.tasks
        return sum(min(1.0, windows_of(one, relation.panes, moved) / tasks) for one in set(self.windows[relation.name]))

    def moved(self, relations: Sequence[Relation]) -> float:
        """So many panes go by in a batch."""
        return self.known.moved(union(*(self.grains[one.name] for one in relations)), shortest(relations))

    def insert(self, rows: float, columns: int) -> float:
        """Of a record into an exact leaf with so many groups for each record."""
        size = rows * self.known.rows * (KEY_BYTES * columns + PROBE_BYTES)
        return self.costs.insert_at(size, size)

    def union(self, relations: Sequence[Relation]) -> tuple[float, str]:
        """Nanoseconds a record of relations that are stored as one, and by which table that is cheaper."""
        names, attributes = [one.name for one in relations], finest({a for one in relations for a in one.attributes})
        rows, columns = self.groups(names), len(attributes) + 1 + sum(words_of(relations).values())
        windows = [window for name in names for window in self.windows[name]]
        read = read_for(windows, shortest(relations), self.moved(relations))
        each = self.costs.segment.of(columns) + rolling(*read, len(attributes), self.costs)
        rest = self.block + sum(map(self.made, relations)) / max(1.0, self.known.rows)
        exact = self.insert(rows, columns) + rows * (self.costs.fresh + each)
        appended = self.costs.appended + each
        return (exact + rest, EXACT) if exact <= appended else (appended + rest, APPEND)

    def made(self, relation: Relation) -> float:
        """Nanoseconds of the groups that a task's rows are rolled up to."""
        if relation.name not in self._made:
            groups = self.known.groups(self.grains[relation.name])
            self._made[relation.name] = grouping(Made(relation, groups, items=self.closings(relation)), self.costs)
        return self._made[relation.name]

    def spared(self, relation: Relation) -> float:
        """Nanoseconds a record that a union costs less without a relation, at most, where all else stays: each record
        makes a row."""
        rolled, _ = read_for(self.windows[relation.name], relation.panes, self.moved([relation]))
        return rolling(rolled, 0.0, 0, self.costs) + self.made(relation) / max(1.0, self.known.rows)

    @property
    def block(self) -> float:
        """Of one more stored relation."""
        return self.costs.block / max(1.0, self.known.rows)

    def partition(self, parts: Iterable[Sequence[Relation]]) -> float:
        return sum(self.union(part)[0] if len(part) > 1 else self.alone(part[0]) for part in parts)


def chosen_unions(kept: Stored, asked: str, known: Statistics, costs: Costs) -> tuple[Union, ...]:
    """The unions of the partition that promises to be cheapest, or of what is asked for; none: each by itself."""
    if asked == EACH:
        return ()
    windows = {one.name: tuple(reader.window for reader in kept.reading(one.name)) for one in kept.relations}
    pricing = Pricing(dict(lattice(kept.relations).grains), windows, known, costs)
    found: list[Union] = []
    for relations in unitable(kept):
        if asked in (ONE, ROWS):
            parts: Sequence[Sequence[Relation]] = [relations]
        else:
            parts = best_partition(relations, pricing)
        for part in parts:
            if len(part) > 1:
                table = {ONE: EXACT, ROWS: APPEND}.get(asked) or pricing.union(part)[1]
                found.append(Union(tuple(sorted(one.name for one in part)), table))
    return tuple(sorted(found, key=lambda one: one.relations))


def best_partition(relations: Sequence[Relation], pricing: Pricing) -> list[list[Relation]]:
    """Relations in parts that are stored as one each."""
    alone = [[one] for one in relations]
    tried = [alone, *_splits(relations, pricing)]
    if len(relations) <= MOST_MERGED:
        tried.append(_merged(alone, pricing))
    by_panes: dict[Panes, list[Relation]] = {}
    for one in relations:
        by_panes.setdefault(one.panes, []).append(one)
    if len(by_panes) > 1:  # those of the same panes first
        tried.append([part for same in by_panes.values() for part in best_partition(same, pricing)])
        if len(tried[-1]) <= MOST_MERGED:
            tried.append(_merged(tried[-1], pricing))
    best = min(tried, key=pricing.partition)
    return _without_strays(best, pricing)


def _splits(relations: Sequence[Relation], pricing: Pricing) -> Iterable[list[list[Relation]]]:
    """All in one, and those of fewer groups apart from those of more."""
    ordered = sorted(relations, key=lambda one: (pricing.groups([one.name]), one.name))
    yield [ordered]
    for number in range(1, SPLITS):
        at = len(ordered) * number // SPLITS
        if 0 < at < len(ordered):
            yield [ordered[:at], ordered[at:]]
            yield [*([one] for one in ordered[:at]), ordered[at:]]


def _merged(parts: list[list[Relation]], pricing: Pricing) -> list[list[Relation]]:
    """From each by itself, the two parts that gain most by being one, as long as some gain."""
    parts = list(parts)
    costs = [pricing.partition([part]) for part in parts]
    while len(parts) > 1:
        pairs = [(a, b) for a in range(len(parts)) for b in range(a)]
        gains = [costs[a] + costs[b] - pricing.union([*parts[a], *parts[b]])[0] for a, b in pairs]
        best = max(range(len(pairs)), key=gains.__getitem__)
        if gains[best] <= 0.0:
            break
        a, b = pairs[best]
        joined = [*parts[a], *parts[b]]
        parts = [part for number, part in enumerate(parts) if number not in (a, b)] + [joined]
        costs = [cost for number, cost in enumerate(costs) if number not in (a, b)] + [pricing.union(joined)[0]]
    return parts


def _without_strays(parts: list[list[Relation]], pricing: Pricing) -> list[list[Relation]]:
    """The same with those by themselves that cost less so than their roll-up does."""
    found: list[list[Relation]] = []
    for part in parts:
        kept, cost = list(part), pricing.partition([part])
        used: Counter[object] = Counter(what for one in part for what in _uses(one, pricing))
        for one in sorted(part, key=lambda relation: (pricing.alone(relation), relation.name)):
            else_same = all(used[what] > 1 for what in _uses(one, pricing)) and not _has_prefixes(one)
            spared = pricing.spared(one) if else_same else cost
            if len(kept) > 1 and pricing.alone(one) < spared:
                rest = [other for other in kept if other is not one]
                without = pricing.partition([rest])
                if without + pricing.alone(one) < cost:
                    kept, cost = rest, without
                    used.subtract(_uses(one, pricing))
                    found.append([one])
        found.append(kept)
    return found


def _uses(one: Relation, pricing: Pricing) -> tuple[object, ...]:
    """What a union would do without if no other relation in it used it."""
    return (*one.attributes, *one.states, one.panes, *pricing.windows[one.name])


def _has_prefixes(one: Relation) -> bool:
    """Whether some attributes may follow from others."""
    return any(isinstance(attribute, Prefix) for attribute in one.attributes)


def way_behind(kept: Stored, known: Statistics, costs: Costs, stream: Stream, total: float = inf) -> Behind:
    """What a record of a stream costs behind the leaves. Without a watermark, windows close but once, at the end of so
    many records."""
    grains = lattice(kept.relations).grains

    def groups(relation: Relation) -> float:
        return known.groups(grains[relation.name]) if relation.name in grains else known.made(relation)

    every = max(1.0, total / (known.rows * known.tasks))
    batches = every if stream.delay is None else 1.0
    pace = Pace(known.tasks, lambda one: known.moved(grains[one.name], one.panes), batches, every)
    return behind(handed(kept, groups, known.rows, pace), known.rows, costs)


def stored_as(kept: Stored, unions: Sequence[Union]) -> Stored:
    """What is stored, with these unions."""
    return united(kept, unions) if unions else kept
