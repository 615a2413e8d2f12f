"""A survey: packed keys of some thousand tuples in a row, from which any relation's groups can be counted.

A task takes it from its first chunk (`runtime.sampling`), the planner asks it about as many candidates as it likes:
how many groups there are, how clustered they are, which part of the tuples is chosen. Counting one takes about a tenth
of a millisecond, and is done once.

Estimates, with the error seen on generated streams (tests/unit/test_survey.py):
* groups of m surveyed tuples are counted exactly. Those of a task of n tuples follow d(m)·(n/m)^β (Heaps' law); β is
  the growth between m/2 and m, and falls with every doubling as it fell from the one before. Up to half a million
  tuples half of the estimates are within a factor of 1.25, nine of ten within 2.5, all within 4; at a million 7 was
  seen: too high, where few groups come in long flows. Queries that run are counted exactly, which replaces this, and
  corrects it for phantoms (`runtime.statistics.Known`).
* how often groups come is counted among all tuples, or those that a feeder passes on, and goes on beyond the sample by
  the Zipf law of its frequent groups (`sharing.popularity.estimated`): with the right number of groups, evictions of an
  LRU table follow within 10 %.
* the flow length l_a is what a table of half as many buckets as groups evicts less than the model of random data
  (seed smap, Sec. 5.3): within 15 % for flows one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp2, log2

import numpy as np

from penstock.kernels import survey as kernels
from penstock.sharing.collision import flow_length
from penstock.sharing.grain import Grain
from penstock.sharing.lattice import EVERY, Lattice
from penstock.sharing.layout import Layout

Array = np.ndarray
LEAST_BUCKETS = 8


@dataclass(frozen=True)
class Counted:
    """Of one relation: tuples chosen, groups in a quarter and a half of them and in all, and its flow length."""

    tuples: int
    quarter: int
    half: int
    groups: int
    length: float

    def extrapolated(self, factor: float) -> float:
        """Groups of `factor` times as many tuples (of a part of them: at most as many)."""
        if not self.groups or factor <= 1.0:
            return min(float(self.groups), self.tuples * factor)
        doublings = log2(factor)
        before, growth = (_growth(*pair) for pair in ((self.quarter, self.half), (self.half, self.groups)))
        slowing = min(1.0, growth / before) if before else 1.0
        if slowing < 1.0:
            doublings = slowing * (1.0 - slowing**doublings) / (1.0 - slowing)
        return min(self.groups * exp2(growth * doublings), self.tuples * factor)


def _growth(fewer: int, more: int) -> float:
    """The exponent of growth from half as many tuples on."""
    return min(1.0, max(0.0, log2(more / max(1, fewer)))) if more else 0.0


@dataclass(frozen=True)
class Survey:
    """`words` are the packed keys of all relations of a plan, sieves among them, as `layout` says."""

    layout: Layout
    words: Array
    _counted: dict[Grain, Counted] = field(default_factory=dict, repr=False, compare=False)

    @property
    def tuples(self) -> int:
        return int(self.words.shape[1])

    def bits(self, grain: Grain, lattice: Lattice) -> int:
        """Width of the relation's packed key."""
        return sum(self.layout.places[part.component].bits for part in lattice.parts(grain))

    def counted(self, grain: Grain, lattice: Lattice) -> Counted:
        if grain not in self._counted:
            self._counted[grain] = self._count(grain, lattice)
        return self._counted[grain]

    def below(self, grain: Grain, feeder: Grain | None, lattice: Lattice) -> Array:
        """How often each group of a relation comes in what a feeder passes on that keeps all its groups: the first
        tuple of each (None: the stream)."""
        chosen = self._chosen(grain)
        hashes, n = self._hashes(grain, chosen, lattice)
        above = np.empty(0, np.uint64) if feeder is None else self._hashes(feeder, chosen, lattice)[0]
        room = 1 << (2 * n).bit_length()
        passed, known, number = np.zeros(room, np.uint64), np.zeros(room, np.uint64), np.zeros(room, np.int64)
        counts = np.empty(n, np.int64)
        return counts[: int(kernels.count_below(hashes, above, n, passed, known, number, counts))]

    def _hashes(self, grain: Grain, chosen: Array, lattice: Lattice) -> tuple[Array, int]:
        """A number for the group of each tuple that is chosen, and how many those are."""
        hashes = np.empty(self.tuples, np.uint64)
        return hashes, int(kernels.hash_chosen(self.words, self._masks(grain, lattice), chosen, hashes))

    def _count(self, grain: Grain, lattice: Lattice) -> Counted:
        hashes, n = self._hashes(grain, self._chosen(grain), lattice)
        known = np.zeros(1 << (2 * n).bit_length(), np.uint64)
        quarter, half, groups = (int(count) for count in kernels.count_distinct(hashes, n, known))
        return Counted(n, quarter, half, groups, _length(hashes, n, groups))

    def _masks(self, grain: Grain, lattice: Lattice) -> Array:
        """What of each word belongs to the relation's key."""
        masks = [0] * self.layout.words
        for part in lattice.parts(grain):
            place = self.layout.places[part.component]
            masks[place.word] |= (place.mask >> part.drop << part.drop) << place.shift
        return np.array(masks, np.uint64)

    def _chosen(self, grain: Grain) -> Array:
        """Tuples that some query of the relation chooses; empty: all."""
        everything = np.empty(0, np.uint8)
        sieves = [base for base, _ in grain if base.startswith("sieve:")]
        if EVERY in sieves or not sieves:
            return everything
        held = np.ones(self.tuples, bool)
        for base in sieves:
            place = self.layout.places[base]
            if not place.bits:
                return everything
            held &= (self.words[place.word] >> np.uint64(place.shift)) & np.uint64(1) != 0
        return (~held).astype(np.uint8)


def _length(hashes: Array, n: int, groups: int) -> float:
    """l_a of these keys, in this order; 1 where they are too few to tell."""
    if groups <= LEAST_BUCKETS:
        return 1.0
    buckets = max(LEAST_BUCKETS, groups // 2)
    evicted = int(kernels.count_evictions(hashes, n, np.zeros(buckets, np.uint64)))
    return max(1.0, flow_length(groups, buckets, evicted / n)) if evicted else n / groups
