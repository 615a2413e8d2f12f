"""Eviction curves as the aggregate-tree paper has them, and the popularity below a table by a law.

    Lemma   perfect LFU on Zipf data (Lemma 6.1), uniform data (Lemma 7.1)
    Whole   all groups are kept, at no cost in memory: a query's table in the paper (Sec. III-D)

The engine plans with `sharing.model.eviction.Che`: LRU is not close to LFU.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.sharing.model.eviction import Curve
from penstock.sharing.model.popularity import Popularity, harmonic

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lemma(Curve):
    """The paper's: out = b + f·n, never below g (Eq. 1).

    f = 1 − (b/g)^{1−α}, or 1 − ln b/ln g for α = 1 (Lemma 6.1); with `exact`, what these approximate: 1 − H(b, α)/H(g,
    α).  α = 0 is Lemma 7.1.  It is not decreasing in b where n(1 − α) < g, and with the bound at g a tiny table seems
    to do all a large one does: not to be planned with.
    """

    groups: float
    alpha: float
    exact: bool = False

    @property
    def most(self) -> float:  # type: ignore[override]
        return self.groups

    @cached_property
    def points(self) -> tuple[Array, Array, Array, float]:
        entries = self.grid(np.inf)
        return entries, entries, self.rates(entries), self.groups

    def rates(self, buckets: ArrayLike) -> Array:
        """f of a number of entries."""
        b = np.clip(np.asarray(buckets, np.float64), 0.0, self.groups)
        if self.exact:
            found = 1.0 - harmonic(b, self.alpha) / harmonic(self.groups, self.alpha)
        elif self.alpha == 1.0:
            found = 1.0 - np.log(np.maximum(b, 1.0)) / np.log(max(self.groups, 1.0 + 1e-9))
        else:
            found = 1.0 - (np.maximum(b, 1e-9) / self.groups) ** (1.0 - self.alpha)
        return np.where(b > 0.0, np.clip(found, 0.0, 1.0), 1.0)

    def response(self, buckets: float, tuples: float) -> tuple[float, float]:
        slope, held = float(self.rates(buckets)), min(max(buckets, 0.0), self.groups)
        if held > 0.0 and held + slope * tuples < self.groups:
            return self.groups, 0.0
        return held, slope

    def outs(self, buckets: Array, tuples: Array) -> Array:
        held = np.minimum(buckets, self.groups)
        found = held + self.rates(buckets) * tuples
        return np.where(held > 0.0, np.maximum(found, self.groups), tuples)


@dataclass(frozen=True)
class Whole(Curve):
    """Passes on each of its groups once, and needs no memory that is shared."""

    groups: float
    most: float = 0.0

    def response(self, buckets: float, tuples: float) -> tuple[float, float]:
        return min(self.groups, tuples), 0.0

    @cached_property
    def points(self) -> tuple[Array, Array, Array, float]:
        return np.zeros(1), np.array([self.groups]), np.zeros(1), 0.0

    def outs(self, buckets: Array, tuples: Array) -> Array:
        return np.minimum(self.groups, tuples) + 0.0 * buckets


def below(popularity: Popularity, spread: float, feeder: float, time: float, tuples: float) -> Popularity:
    """The popularity in the input of a node whose feeder passes on what its own table cannot keep.

    A group of the node of popularity q consists of m ∝ q^`spread` groups of the feeder, which has `feeder` groups in
    all.  In `tuples` records each of those, of popularity q/m, passes on (1 − e^−y) + (n − t) q/m e^−y entries, where y
    is t q/m and t the `time` that an entry stays there (`eviction.Che`).  With `spread` 1 the popularity stays what it
    was, with 0 and a large table it becomes even.
    """
    many = popularity.chance**spread
    many *= feeder / float(many @ popularity.groups)
    many = np.maximum(many, 1.0)
    each = popularity.chance / many
    stay = np.exp(-min(time, tuples) * each)
    passed = many * (1.0 - stay + max(0.0, tuples - time) * each * stay)
    return Popularity(popularity.groups, passed / float(passed @ popularity.groups))
