"""A survey: packed keys of some thousand records, from which any relation's groups can be counted.

A task takes it from all over its records (`runtime.task.sampling`). The planner asks it about any candidate: how many
groups there are, how clustered they are, which part of the records is chosen. Counting one takes about a tenth of a
millisecond, and is done once.

Estimates, with the error seen on generated streams (tests/unit/runtime/profile/test_survey.py):
* groups of m surveyed records are counted exactly. Those of a task of n records follow d(m)·(n/m)^β (Heaps' law); β is
  the growth between a half and all of the sample's blocks, and falls with every doubling as it fell from the one
  before. What half of the blocks have is the mean over all halves, known from how many blocks each group is in: that of
  one half depends on when it was. Records of a block are in a row, so flows shorter than a block count as they should.
  Of a connection log (400,000 of 1.8 M records, relations of 2 to 10 attributes) half of the estimates are within 1.2,
  nine of ten within 1.5, all within 2.2; of generated streams see the tests. Queries that run are counted exactly,
  which replaces this, and corrects it for phantoms (`runtime.profile.statistics.Known`).
* how often groups come is counted among all records, or those that a feeder passes on, and goes on beyond the sample by
  the Zipf law of its frequent groups (`sharing.model.popularity.estimated`): with the right number of groups, evictions
  of an LRU table follow within 10 %.
* the flow length l_a is what a table of half as many buckets as groups evicts less than the model of random data
  (seed smap, Sec. 5.3): within 15 % for flows one after the other. Groups are those of one turn (`turns`): that panes
  come one after the other is no matter of flows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb, exp2, log2

import numpy as np

from penstock.kernels.tables import survey as kernels
from penstock.relations.component import Component, Tag, component_of, sieve_component
from penstock.relations.layout import Layout, Part
from penstock.relations.relation import Relation
from penstock.runtime.profile.turns import Turns, quickest, turns_of
from penstock.sharing.graph.grain import Grain
from penstock.sharing.graph.lattice import EVERY, Lattice
from penstock.sharing.model.collision import first_met, flow_length

Array = np.ndarray
LEAST_BUCKETS = 8
BLOCKS = 16  # of records in a row, that a sample is cut into
MOST_FIRSTS = 32  # feeders whose first records are kept
ALL = np.empty(0, np.uint8)  # as a choice of records
LEAST_LEFT = 0.05  # of all evictions: those in the course of a turn, however many its beginning has
SHUFFLED_ALL = 1.5  # turns, below which panes are as good as mixed
THIN = 4  # blocks, of which a thinned sample has one
# By the number of blocks that a group is in: how likely it is in a quarter or half of them at random, and in all.
MET = np.array([[1 - comb(BLOCKS - k, some) / comb(BLOCKS, some) for k in range(BLOCKS + 1)] for some in (4, 8, 16)])


@dataclass(frozen=True)
class CountedGroups:
    """Of one relation: records chosen, and groups in all of them and, as is to be expected, in any quarter or half of
    their blocks."""

    tuples: int
    quarter: float
    half: float
    groups: int

    def extrapolated(self, factor: float) -> float:
        """Groups of `factor` times as many records (of a part of them: at most as many)."""
        if not self.groups or factor <= 1.0:
            return min(float(self.groups), self.tuples * factor)
        doublings = log2(factor)
        before, growth = (_growth(*pair) for pair in ((self.quarter, self.half), (self.half, self.groups)))
        slowing = min(1.0, growth / before) if before else 1.0
        if slowing < 1.0:
            doublings = slowing * (1.0 - slowing**doublings) / (1.0 - slowing)
        return min(self.groups * exp2(growth * doublings), self.tuples * factor)


def _growth(fewer: float, more: float) -> float:
    """The exponent of growth from half as many records on."""
    return min(1.0, max(0.0, log2(more / max(1, fewer)))) if more else 0.0


@dataclass(frozen=True)
class Survey:
    """`words` are the packed keys of all relations of a plan, sieves among them, as `layout` says. The records `lasted`
    so long in the stream's time (0: not known)."""

    layout: Layout
    words: Array
    lasted: float = 0.0
    _counted: dict[Grain, CountedGroups] = field(default_factory=dict, repr=False, compare=False)
    _lengths: dict[Grain, float] = field(default_factory=dict, repr=False, compare=False)
    _localities: dict[Grain, float] = field(default_factory=dict, repr=False, compare=False)
    _turns: dict[tuple[Component, ...], Turns] = field(default_factory=dict, repr=False, compare=False)
    _firsts: dict[tuple[Grain, tuple[str, ...]], Array] = field(default_factory=dict, repr=False, compare=False)
    _last: dict[Grain, Array] = field(default_factory=dict, repr=False, compare=False)
    _choices: dict[tuple[str, ...], Array] = field(default_factory=dict, repr=False, compare=False)

    @property
    def tuples(self) -> int:
        return int(self.words.shape[1])

    def thinned(self) -> Survey:
        """A part of the records, from all over: enough to see that something has changed."""
        blocks = np.arange(self.tuples) * BLOCKS // max(1, self.tuples)
        return Survey(self.layout, np.ascontiguousarray(self.words[:, blocks % THIN == 0]), self.lasted)

    def afresh(self) -> Survey:
        """The same without what was counted in it: what a grain stands for depends on all relations of a lattice."""
        return Survey(self.layout, self.words, self.lasted)

    def bits(self, grain: Grain, lattice: Lattice) -> int:
        """Width of the relation's packed key."""
        return sum(self.layout.places[part.component].bits for part in lattice.parts(grain))

    def counted(self, grain: Grain, lattice: Lattice) -> CountedGroups:
        if grain not in self._counted:
            self._counted[grain] = self._count(grain, lattice)
        return self._counted[grain]

    def counted_by(self, parts: Iterable[Part], sieve: Component | None) -> CountedGroups:
        """Groups by any components, of the records that pass a sieve, if there is one."""
        hashes = np.empty(self.tuples, np.uint64)
        kernels.hash_words(self.words, self._masks(parts), hashes)
        return _counted(_taken(hashes, self._passing(sieve)))

    def spread(self, component: Component, sieve: Component | None) -> int:
        """From the least to the greatest value of a component that records which pass a sieve have."""
        place = self.layout.places[component]
        values = _taken(self.words[place.word], self._passing(sieve)) >> np.uint64(place.shift) & np.uint64(place.mask)
        return int(values.max() - values.min()) + 1 if len(values) else 0

    def _passing(self, sieve: Component | None) -> Array:
        return ALL if sieve is None else self._through((sieve.text,))

    def length(self, grain: Grain, lattice: Lattice) -> float:
        """l_a of these keys, in this order; 1 where they are too few to tell."""
        if grain not in self._lengths:
            counted = self.counted(grain, lattice)
            self._lengths[grain] = self._length(grain, lattice, counted.tuples, counted.groups)
        return self._lengths[grain]

    def _length(self, grain: Grain, lattice: Lattice, n: int, groups: int) -> float:
        if groups <= LEAST_BUCKETS:
            return 1.0
        turns = self.turns(grain, lattice).sampled
        each, buckets = groups / turns, _buckets(groups / turns)
        evicted = self._evicted(grain, lattice, buckets)
        if not evicted:
            return n / groups
        # What the first records of a turn find is left of the turn before, however long flows are.
        left = max(LEAST_LEFT * evicted, evicted - (turns - 1.0) * float(first_met(each, buckets)))
        found: float = flow_length(each, buckets, float(left) / n)
        return min(n / groups, max(1.0, found))

    def locality(self, grain: Grain, lattice: Lattice) -> float:
        """How many times fewer entries a table passes on because records of a group come close together: against the
        same records in any order, turn after turn."""
        if grain not in self._localities:
            turns = self.turns(grain, lattice)
            buckets = _buckets(self.counted(grain, lattice).groups / turns.sampled)
            together = self._evicted(grain, lattice, buckets)
            apart = self._evicted(grain, lattice, buckets, self._any_order(grain, lattice, turns))
            self._localities[grain] = max(1.0, apart / together) if together else 1.0
        return self._localities[grain]

    def _evicted(self, grain: Grain, lattice: Lattice, buckets: int, order: Array | None = None) -> int:
        hashes, chosen = self._hashes(grain, lattice), self._chosen(grain)
        if order is not None:
            hashes, chosen = hashes[order], chosen[order] if len(chosen) else chosen
        return int(kernels.count_evictions(_taken(hashes, chosen), np.zeros(buckets, np.uint64)))

    def _any_order(self, grain: Grain, lattice: Lattice, turns: Turns) -> Array:
        """The records shuffled: of all turns, or where panes come one after the other pane by pane."""
        if turns.sampled < SHUFFLED_ALL:  # in this order any part of the records stands for all
            return self._shuffled
        panes = [self._numbers(one) for one in self._panes(grain, lattice)]
        numbers = max(panes, key=lambda one: len(np.unique(one)))
        order: Array = self._shuffled[np.argsort(numbers[self._shuffled], kind="stable")]
        return order

    def turns(self, grain: Grain, lattice: Lattice) -> Turns:
        """How the panes of a relation follow one another."""
        panes = self._panes(grain, lattice)
        if panes not in self._turns:
            self._turns[panes] = quickest(turns_of(self._numbers(one), BLOCKS) for one in panes)
        return self._turns[panes]

    def _panes(self, grain: Grain, lattice: Lattice) -> tuple[Component, ...]:
        return tuple(part.component for part in lattice.parts(grain) if part.component.tag is Tag.PANE)

    def _numbers(self, component: Component) -> Array:
        """A component of all records, from its least value on."""
        place = self.layout.places[component]
        numbers: Array = self.words[place.word] >> np.uint64(place.shift) & np.uint64(place.mask)
        return numbers.astype(np.int64)

    def share(self, grain: Grain) -> float:
        """Of the records, those that some query of the relation chooses."""
        chosen = self._chosen(grain)
        return float(chosen.mean()) if len(chosen) else 1.0

    def below(self, grain: Grain, feeder: Grain | None, lattice: Lattice) -> Array:
        """How often each group of a relation comes in what a feeder passes on that keeps all its groups: the first
        record of each (None: the stream)."""
        if feeder is None:
            hashes = _taken(self._hashes(grain, lattice), self._chosen(grain))
        else:
            hashes = self._hashed(self._passed(grain, feeder, lattice), grain, lattice)
        counts = np.zeros(_room(hashes), np.uint32)
        return counts[: int(kernels.count_groups(hashes, np.zeros(_room(hashes), np.uint64), counts))]

    def _passed(self, grain: Grain, feeder: Grain, lattice: Lattice) -> Array:
        """The first record of each of a feeder's groups, of those that a relation chooses; kept, as others below the
        same feeder are asked for next."""
        key = feeder, self._sieves(grain)
        if key not in self._firsts:
            chosen = self._chosen(grain)
            hashes = _taken(self._hashes(feeder, lattice), chosen)
            first = np.empty(len(hashes), np.int64)
            first = first[: int(kernels.first_of_each(hashes, np.zeros(_room(hashes), np.uint64), first))]
            if len(self._firsts) >= MOST_FIRSTS:
                self._firsts.pop(next(iter(self._firsts)))
            self._firsts[key] = np.take(self.words, np.flatnonzero(chosen)[first] if len(chosen) else first, axis=1)
        return self._firsts[key]

    def _hashes(self, grain: Grain, lattice: Lattice) -> Array:
        """A number for the group of each record; the last ones are kept, as more is asked of the same relation."""
        if grain not in self._last:
            self._last.clear()
            self._last[grain] = self._hashed(self.words, grain, lattice)
        return self._last[grain]

    def _hashed(self, words: Array, grain: Grain, lattice: Lattice) -> Array:
        hashes = np.empty(words.shape[1], np.uint64)
        kernels.hash_words(words, self._masks(lattice.parts(grain)), hashes)
        return hashes

    @cached_property
    def _shuffled(self) -> Array:
        return np.random.default_rng(0).permutation(self.tuples)

    def _count(self, grain: Grain, lattice: Lattice) -> CountedGroups:
        return _counted(_taken(self._hashes(grain, lattice), self._chosen(grain)))

    def _masks(self, parts: Iterable[Part]) -> Array:
        """What of each word belongs to a key."""
        masks = [0] * self.layout.words
        for part in parts:
            place = self.layout.places[part.component]
            masks[place.word] |= (place.mask >> part.drop << part.drop) << place.shift
        return np.array(masks, np.uint64)

    def _chosen(self, grain: Grain) -> Array:
        """Records that some query of the relation chooses; empty: all."""
        sieves = self._sieves(grain)
        if sieves not in self._choices:
            self._choices[sieves] = self._through(sieves)
        return self._choices[sieves]

    def _sieves(self, grain: Grain) -> tuple[str, ...]:
        return tuple(sorted(base for base, _ in grain if base.startswith(Tag.SIEVE)))

    def _through(self, sieves: tuple[str, ...]) -> Array:
        if EVERY in sieves or not sieves:
            return ALL
        held = np.ones(self.tuples, bool)
        for base in sieves:
            place = self.layout.places[component_of(base)]
            if not place.bits:
                return ALL
            held &= (self.words[place.word] >> np.uint64(place.shift)) & np.uint64(1) != 0
        return (~held).astype(np.uint8)


def _counted(hashes: Array) -> CountedGroups:
    room = _room(hashes)
    known, last, times = np.zeros(room, np.uint64), np.zeros(room, np.uint8), np.zeros(room, np.uint8)
    spread = np.zeros(BLOCKS + 1, np.int64)
    kernels.count_blocks(hashes, known, last, times, spread)
    quarter, half, groups = MET @ spread
    return CountedGroups(len(hashes), float(quarter), float(half), int(groups))


def _taken(hashes: Array, chosen: Array) -> Array:
    """Those of the records that are chosen."""
    return hashes[chosen != 0] if len(chosen) else hashes


def _room(hashes: Array) -> int:
    """Slots for their groups: a power of two, at most half full."""
    return 1 << max(1, 2 * len(hashes) - 1).bit_length()


def _buckets(groups: float) -> int:
    return max(LEAST_BUCKETS, int(groups) // 2)


def with_sieves(survey: Survey, taken: Iterable[Relation], now: Iterable[Relation]) -> Survey:
    """The same sample for relations that are stored `now`, where others were when it was taken: a sieve is called by a
    relation, and serves all that take the same records."""
    places = survey.layout.places
    named = ((one, sieve_component(one.name)) for one in taken)
    known = {(one.choice.where, one.choice.gap): name for one, name in named if name in places}
    more = {}
    for one in now:
        name, same = sieve_component(one.name), known.get((one.choice.where, one.choice.gap))
        if name not in places and same is not None:
            more[name] = places[same]
    return replace(survey, layout=Layout({**places, **more}, survey.layout.words)) if more else survey
