"""How much a table passes on of what it takes in, by its entries (seed aggregate-tree, Sec. IV, VI, VII).

A `Curve` is the response of one node: with b entries and n records coming in it passes on

    out = fixed + slope · n        (Eq. 1: b + f · n)

in an epoch, evictions and what is left at its end together.

    Che            a table that evicts the least recently used
    DirectMapped   a direct-mapped table (seed smap, Eq. 13 and 15)
    Taken          any of these, where a filter stands before the table or records come in flows
    InTurns        any of these, where the groups of an epoch come in turns, as those of its panes do

LRU is not close to LFU: of Zipf data with α = 0.85 in a tenth of the groups' space, the paper's lemma has 0.29 of
the records evicted, exact LFU 0.38, and LRU really 0.50.  And b + f·n counts twice the records that fill the table.
Che's approximation: an entry stays for a time t that is nearly the same for all, so

    b = Σ 1 − e^{−p t},    f = Σ p e^{−p t},    out = b + f (n − t)  for n > t

which is the tangent at t of the curve of distinct groups, taken at n.  It never rises with b, and with n < t the table
just holds all that has come.  Within 1 % of simulation on independent records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.model.collision import first_met, occupied, rate, rates
from penstock.sharing.model.popularity import Popularity

Array = NDArray[np.float64]

STEPS = 64  # points of a curve


class Curve(ABC):
    """`most`: with more entries than that, nothing is gained."""

    most: float

    @abstractmethod
    def response(self, buckets: float, tuples: float) -> tuple[float, float]:
        """(fixed, slope) at n records; without a table all pass, (0, 1)."""

    @abstractmethod
    def outs(self, buckets: Array, tuples: Array) -> Array:
        """`out` of arrays that are broadcast against each other."""

    def out(self, buckets: float, tuples: float) -> float:
        """Entries passed on in an epoch of `tuples` records."""
        fixed, slope = self.response(buckets, tuples)
        return fixed + slope * tuples

    @cached_property
    def points(self) -> tuple[Array, Array, Array, float]:
        """Entries, fixed parts and slopes at points of the curve, and what `out` never falls below: for searches that
        try them all at once.  The first is no table at all."""
        entries = self.grid(np.inf)
        both = [self.response(float(b), np.inf) for b in entries]
        return entries, np.array([fixed for fixed, _ in both]), np.array([slope for _, slope in both]), 0.0

    def grid(self, limit: float, steps: int = STEPS) -> Array:
        """Numbers of entries worth trying, up to `most` and the limit: none, then in equal ratios and near the end in
        equal steps."""
        top = min(self.most, limit)
        if top <= 1.0:
            return np.array([0.0, max(top, 0.0)])
        ratios = np.geomspace(1.0, top, steps // 2)
        return np.unique(np.concatenate([[0.0], ratios, np.linspace(0.0, top, steps // 2)[1:-1]]))


@lru_cache(64)
def _times(longest: float) -> Array:
    return np.concatenate([[0.0], np.geomspace(1.0, longest, STEPS)])


@dataclass(frozen=True)
class Che(Curve):
    """An LRU table, by the popularity in its own input; `longest` is the most records that will come."""

    popularity: Popularity
    longest: float

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        """Times, entries, fixed parts and slopes: linear in between."""
        times = _times(max(2.0, self.longest))
        entries, slopes = self.popularity.both(times)
        # (1 − p)^t in place of e^{−pt}: the same sums, exact at t = 1, where one entry has been seen.
        return times, np.maximum.accumulate(entries), np.maximum(entries - times * slopes, 0.0), slopes

    @cached_property
    def _points(self) -> tuple[list[float], list[float], list[float], list[float]]:
        times, entries, fixed, slopes = (each.tolist() for each in self._arrays)
        return times, entries, fixed, slopes

    @cached_property
    def points(self) -> tuple[Array, Array, Array, float]:
        _, entries, fixed, slopes = self._arrays
        return entries, fixed, slopes, 0.0

    @property
    def most(self) -> float:  # type: ignore[override]
        return self._points[1][-1]

    def time(self, buckets: float) -> float:
        """t: how many records an entry stays after its last use; infinite where all groups have room."""
        times, entries, _, _ = self._points
        return float("inf") if buckets >= entries[-1] else _between(buckets, entries, times)

    def response(self, buckets: float, tuples: float) -> tuple[float, float]:
        if buckets <= 0.0:
            return 0.0, 1.0
        times, entries, fixed, slopes = self._points
        held = min(buckets, _between(tuples, times, entries))
        return _between(held, entries, fixed), _between(held, entries, slopes)

    def outs(self, buckets: Array, tuples: Array) -> Array:
        times, entries, fixed, slopes = self._arrays
        held = np.minimum(buckets, np.interp(tuples, times, entries))
        found = np.interp(held, entries, fixed) + np.interp(held, entries, slopes) * tuples
        return np.where(buckets > 0.0, found, tuples)


@dataclass(frozen=True)
class Taken(Curve):
    """The response of a table that takes a `share` of the records, which come in flows of `length`: of a flow it sees
    one (seed smap, Sec. 5.3).  What it passes on is counted in the records that may come, before any is chosen, as
    costs are."""

    curve: Curve
    share: float
    length: float

    @property
    def most(self) -> float:  # type: ignore[override]
        return self.curve.most

    @cached_property
    def points(self) -> tuple[Array, Array, Array, float]:
        entries, fixed, slopes, least = self.curve.points
        return entries, fixed / self.share, np.append(1.0, slopes[1:] / self.length), least / self.share

    def response(self, buckets: float, tuples: float) -> tuple[float, float]:
        if buckets <= 0.0:
            return 0.0, 1.0
        fixed, slope = self.curve.response(buckets, tuples * self.share / self.length)
        return fixed / self.share, slope / self.length

    def outs(self, buckets: Array, tuples: Array) -> Array:
        found = self.curve.outs(buckets, tuples * self.share / self.length) / self.share
        return np.where(buckets > 0.0, found, tuples)


@dataclass(frozen=True)
class DirectMapped(Curve):
    """A direct-mapped table: x·n evicted, and the occupied entries at the end (seed smap, Eq. 13, 15 and 8)."""

    groups: float
    length: float = 1.0

    @property
    def most(self) -> float:  # type: ignore[override]
        return 16.0 * self.groups

    def response(self, buckets: float, tuples: float) -> tuple[float, float]:
        return occupied(self.groups, buckets), rate(self.groups, buckets, self.length)

    def outs(self, buckets: Array, tuples: Array) -> Array:
        x = rates(self.groups, buckets)
        held = np.where(buckets > 0.0, self.groups * (1.0 - x), 0.0)  # the same urn: b(1 − (1 − 1/b)^g) = g(1 − x)
        return held + np.where(buckets > 0.0, x / self.length, 1.0) * tuples


@dataclass(frozen=True)
class InTurns(Curve):
    """The response of a table whose groups come in so many `turns`, each with groups of its own: what it does in one,
    as often (seed smap, Sec. 7, where a pane is an epoch).  `curve` is that of a turn."""

    curve: Curve
    turns: float

    @property
    def most(self) -> float:  # type: ignore[override]
        return self.curve.most

    @cached_property
    def points(self) -> tuple[Array, Array, Array, float]:
        entries, fixed, slopes, least = self.curve.points
        return entries, self._all(entries, fixed), slopes, self.turns * least

    def response(self, buckets: float, tuples: float) -> tuple[float, float]:
        fixed, slope = self.curve.response(buckets, tuples / self.turns)
        return float(self._all(np.array(buckets), np.array(fixed))), slope

    def outs(self, buckets: Array, tuples: Array) -> Array:
        slopes = self.curve.outs(buckets, tuples / self.turns)
        return np.where(buckets > 0.0, self._all(buckets, slopes), tuples)

    def _all(self, buckets: Array, once: Array) -> Array:
        """Of all turns.  Of a direct-mapped table what stands in it at the end of a turn leaves in the next one, some
        of it where Eq. 13 has counted a collision already."""
        if not isinstance(self.curve, DirectMapped):
            return np.asarray(self.turns * once)
        groups = self.curve.groups
        held = np.where(buckets > 0.0, groups * (1.0 - rates(groups, buckets)), 0.0)
        again = np.where(buckets > 0.0, held - first_met(groups, buckets), 0.0)
        return np.asarray(self.turns * once - (self.turns - 1.0) * again)


def in_turns(curve: Curve, turns: float) -> Curve:
    """The same where all is one turn."""
    return curve if turns <= 1.0 else InTurns(curve, turns)


def _between(x: float, xs: list[float], ys: list[float]) -> float:
    """y at x on the line through the points next to it; at the ends as there."""
    above = bisect_right(xs, x)
    if above == 0 or above == len(xs):
        return ys[min(above, len(xs) - 1)]
    low, high = xs[above - 1], xs[above]
    return ys[above - 1] + (ys[above] - ys[above - 1]) * (x - low) / (high - low)
