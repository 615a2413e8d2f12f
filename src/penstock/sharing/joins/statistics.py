"""What is known of the sides of a join when its plan is chosen: measured while it runs, or estimated before.

Symbols are those of the cost formula (`sharing.joins.cost`); all figures are of one slide of the join's window, or of
one instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, expm1, log, prod

ALONE, SHARED, FREE = "alone", "shared", "free"
MANY = 1e15  # groups of a side whose records are all different, about


@dataclass(frozen=True)
class SideFigures:
    """`records` λ_i that come in a slide, `held` w_i in the window, `groups` D_i in the window; it has `panes` n_i, in
    which an early side has `rows` n_i·d_i: a group in each pane that it comes in, and in each part of a pane that
    another task or batch has. The groups of a key have `codes` different values. `kept` are the states of a row,
    `width` its bytes in segments. `stored`: what an early side costs tasks depends on whether the same groups are
    stored for another query anyway (free), or with other states (shared)."""

    records: float
    held: float
    groups: float
    rows: float
    panes: float = 1.0
    codes: float = 1.0
    kept: int = 0
    width: float = 16.0
    stored: str = ALONE


@dataclass(frozen=True)
class JoinStatistics:
    """`pairs` are N_e by the bits of plans, of `keys` that all sides have; `states` of a joined group, `made` of those
    groups at an instant. `together`: so many instants are joined at once. `living`: rows are joined as they are
    stored, else merged before. `measured`: by merge tasks; else estimated of samples."""

    sides: tuple[SideFigures, ...]
    pairs: Mapping[str, float] = field(default_factory=dict)
    keys: float = 1.0
    states: int = 0
    made: float = 1.0
    together: float = 1.0
    living: bool = True
    measured: bool = False

    def pairs_of(self, early: Sequence[bool]) -> float:
        """N_e. Where it was not counted, each side that is aggregated changes it by the factor that it has alone."""
        known = self.pairs.get(_bits(early))
        if known is not None:
            return known
        none = max(1.0, self.pairs.get("0" * len(early), 1.0))
        alone = (_bits(number == side for number in range(len(early))) for side, one in enumerate(early) if one)
        return none * exp(sum(log(max(1e-9, self.pairs.get(bits, none) / none)) for bits in alone))


def _bits(early: Iterable[bool]) -> str:
    return "".join("01"[one] for one in early)


def distinct(records: float, groups: float, of: float) -> float:
    """Different groups of some of the `of` records that have `groups` of them, if each is as likely in any record: m
    records meet S·(1 − e^(−m/S)) of S groups.

    >>> distinct(100, 10, 100), round(distinct(10, 10, 1000), 2), round(distinct(10, 99.9, 100), 2)
    (10.0, 6.32, 10.0)
    """
    if records >= of or groups <= 0:
        return float(groups) if records else 0.0
    there = _support(groups, of)
    return min(groups, -there * expm1(-records / there))


def _support(groups: float, records: float) -> float:
    """S, of which that many records meet `groups`."""
    if groups >= records * (1 - 1e-6):
        return MANY
    low, high = groups, MANY
    for _ in range(80):
        middle = (low * high) ** 0.5
        if -middle * expm1(-records / middle) < groups:
            low = middle
        else:
            high = middle
    return high


def contained(keys: Sequence[float], sizes: Sequence[float]) -> float:
    """Combinations of sides that have so many rows of so many keys, evenly, if the side with the fewest keys has them
    in common with all others.

    >>> contained([10, 20], [100, 40])
    200.0
    """
    fewest = max(1.0, min(keys))
    return fewest * prod(size / max(1.0, each) for each, size in zip(keys, sizes, strict=True))
