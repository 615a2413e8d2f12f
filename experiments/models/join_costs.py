"""Unit-time costs of plans of an aggregation join, for any number of streams (aggregation-join, Sec. 6.3 and 7.1.1).

    statistics of streams ──► Sizes (Appendix A) ──► costs of operations (hash, nested loop) ──► cost of a plan

For a record of S_k, in W_k⁺ and again in W_k⁻, hence 2 (Eq. 15 to 18; m = 2 there, and left to right here):

    C_k = 2 λ_k [ C_uw(W_k) + e_k C_iau(AS_k) + Σ_{j≠k} R_j C_fmt(e_j ? AS_j : W_j) + R C_iau(AS) ]

R_j are the tuples that are there when S_j is asked: the product of what was found in the streams before, n_i in an
aggregation set and m_i in a window; R is the product of all. `e_k`: whether the plan has an EA operator on S_k.

Slips of the paper that are mended: m_i = σ_i w_i (printed α_1 w_1), and in Eq. 20 α_1 stands over B_1 and α over B_g
(printed over B_g and B_2). `bounds` are the sizes of Appendix A, upper bounds; `expected` are the numbers of distinct
values that independent uniform attributes have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log1p, prod
from typing import Protocol

from penstock.sharing.model.collision import distinct

Plan = Sequence[bool]
BUCKETS = 1021  # B of the paper's experiments


@dataclass(frozen=True)
class StreamStatistics:
    """λ, w, g and σ of a stream; 1/σ is the number of values of its join attribute."""

    rate: float
    window: int
    groups: int
    selectivity: float

    @property
    def keys(self) -> int:
        return round(1 / self.selectivity)


@dataclass(frozen=True)
class UnitCosts:
    """Constants of a join method: P (probing, an entry), U (updating a window, a record), U_g (a group, an entry)."""

    probe: float
    update: float
    group: float


@dataclass(frozen=True)
class Sizes:
    """α; α_i, m_i, n_i, B_i by stream; B_g."""

    out: float
    sets: tuple[float, ...]
    window_matches: tuple[float, ...]
    set_matches: tuple[float, ...]
    buckets: tuple[float, ...]
    out_buckets: float


def bounds(streams: Sequence[StreamStatistics], buckets: int = BUCKETS) -> Sizes:
    """Appendix A: α = Π min(w_i, g_i), α_i = min(w_i, g_i/σ_i), m_i = σ_i w_i, n_i = min(w_i σ_i, g_i)."""
    return Sizes(
        prod(min(s.window, s.groups) for s in streams),
        tuple(min(s.window, s.groups * s.keys) for s in streams),
        tuple(s.selectivity * s.window for s in streams),
        tuple(min(s.selectivity * s.window, s.groups) for s in streams),
        *_tables(streams, buckets),
    )


def expected(streams: Sequence[StreamStatistics], buckets: int = BUCKETS) -> Sizes:
    """What uniform and independent attributes have on average.

    α_i is the number of distinct (G_i, J_i) in w_i draws, n_i = σ_i α_i of them have one key, and a group of AS is
    there if its groups meet in some key: α = Π g_i (1 − (1 − Π α_i σ_i/g_i)^{1/σ}).
    """
    sets = tuple(distinct(s.groups * s.keys, s.window) for s in streams)
    found = tuple(size / s.keys for size, s in zip(sets, streams, strict=True))
    meet = prod(n / s.groups for n, s in zip(found, streams, strict=True))
    keys = max(s.keys for s in streams)
    return Sizes(
        prod(s.groups for s in streams) * -_power_less_one(meet, keys),
        sets,
        tuple(s.selectivity * s.window for s in streams),
        found,
        *_tables(streams, buckets),
    )


def _tables(streams: Sequence[StreamStatistics], buckets: int) -> tuple[tuple[float, ...], float]:
    """B_i = min(1/σ_i, B) and B_g = min(g_1, B)."""
    return tuple(min(s.keys, buckets) for s in streams), min(streams[0].groups, buckets)


def _power_less_one(chance: float, times: float) -> float:
    """(1 − chance)^times − 1."""
    return expm1(times * log1p(-chance)) if chance < 1 else -1.0


class Operations(Protocol):
    """C_uw(W_i), C_fmt of W_i or AS_i, C_iau(AS_i) and C_iau(AS): the generic cost terms (Table II).

    Whose record it is that updates AS, and under which plan, is the same to the paper.
    """

    def update_window(self, stream: int) -> float: ...
    def find(self, stream: int, early: bool) -> float: ...
    def update_set(self, stream: int) -> float: ...
    def update_out(self, stream: int, plan: Plan) -> float: ...


@dataclass(frozen=True)
class PaperOperations:
    """The terms of Eq. 19 to 26. Sets are grouped by hashing with both methods."""

    streams: Sequence[StreamStatistics]
    sizes: Sizes
    units: UnitCosts
    hashed: bool

    def update_window(self, stream: int) -> float:
        return self.units.update

    def find(self, stream: int, early: bool) -> float:
        entries = self.sizes.sets[stream] if early else self.streams[stream].window
        return entries / (self.sizes.buckets[stream] if self.hashed else 1) * self.units.probe

    def update_set(self, stream: int) -> float:
        return self.sizes.sets[stream] / self.sizes.buckets[stream] * self.units.group

    def update_out(self, stream: int, plan: Plan) -> float:
        return self.sizes.out / self.sizes.out_buckets * self.units.group


def unit_time(plan: Plan, streams: Sequence[StreamStatistics], sizes: Sizes, costs: Operations) -> float:
    """What the records of one unit of time cost."""
    total = 0.0
    for k, stream in enumerate(streams):
        cost, tuples = costs.update_window(k), 1.0
        if plan[k]:
            cost += costs.update_set(k)
        for j in range(len(streams)):
            if j != k:
                cost += tuples * costs.find(j, plan[j])
                tuples *= sizes.set_matches[j] if plan[j] else sizes.window_matches[j]
        total += 2 * stream.rate * (cost + tuples * costs.update_out(k, plan))
    return total


def paper_cost(
    plan: Plan, streams: Sequence[StreamStatistics], units: UnitCosts, hashed: bool, buckets: int = BUCKETS
) -> float:
    """Eq. 19 to 26 for any number of streams."""
    sizes = bounds(streams, buckets)
    return unit_time(plan, streams, sizes, PaperOperations(streams, sizes, units, hashed))


def expected_cost(
    plan: Plan, streams: Sequence[StreamStatistics], units: UnitCosts, hashed: bool, buckets: int = BUCKETS
) -> float:
    """The same with expected sizes in place of upper bounds."""
    sizes = expected(streams, buckets)
    return unit_time(plan, streams, sizes, PaperOperations(streams, sizes, units, hashed))
