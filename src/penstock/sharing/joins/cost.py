"""What a plan of a join costs on this machine: nanoseconds a slide, and bytes of state.

The engine keeps no running result, so its cost is not the paper's (seed aggregation-join, Sec. 4, which the experiments
have): tasks write panes, and at every instant merge tasks put windows together and join them. For plan e ∈ {0, 1}^m:

    C_e = Σ_i [ e_i: λ_i·insert(bytes) + μ·n_i·d_i;  else: (λ_i + w_i)·a ]
        + β·Σ_i x_i + N_e·(π + φ·states + insert(out)),     N_e = Σ_J Π_i x_i(J)

| symbol | here |
| --- | --- |
| λ_i | records of side i in a slide (`SideFigures.records`) |
| w_i, D_i | records and groups of its window (`held`, `groups`); x_i = D_i if e_i else w_i |
| n_i, d_i | panes of the window, groups of a pane (`panes`, `pane_groups`) |
| N_e | combinations of rows that the join goes through (`JoinStatistics.pairs_of`) |
| insert | a probe of an exact table of so many bytes (`sharing.model.unit_costs.Costs`); `out` are the result's |
| a | a record that is stored as it comes, or read again (`JoinCosts.append`, `JoinCosts.read`) |
| μ, β | a row of a pane merged; a row of a window given its key (`JoinCosts.merge`, `JoinCosts.row`) |
| π, φ | a combination; a state folded for it (`JoinCosts.pair`, `JoinCosts.fold`) |

`runtime.profile.joins` measures the constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.sharing.joins.statistics import FREE, SHARED, JoinStatistics, SideFigures
from penstock.sharing.model.unit_costs import Costs

ENTRY = 16.0  # bytes of an exact table for each group, besides key and states


@dataclass(frozen=True)
class JoinCosts:
    """Nanoseconds; see the table above. `instant` is what an instant costs whatever it holds."""

    append: float
    read: float
    merge: float
    row: float
    pair: float
    fold: float


# Of a server core of 2023, for machines that cannot be calibrated.
USUAL = JoinCosts(append=15.0, read=15.0, merge=40.0, row=30.0, pair=5.0, fold=2.0)


@dataclass(frozen=True)
class PricedPlan:
    """What a plan is expected to take: `cost` ns a slide, of which `sides` and `pairs` have their parts; `combinations`
    N_e and `bytes` of state."""

    early: tuple[bool, ...]
    cost: float
    sides: float
    pairs: float
    combinations: float
    bytes: float


def priced(early: Sequence[bool], known: JoinStatistics, costs: JoinCosts, units: Costs) -> PricedPlan:
    """C_e of a plan, and the bytes that it keeps."""
    plan = tuple(early)
    sides = sum(_side_cost(one, side, costs, units) for one, side in zip(plan, known.sides, strict=True))
    combinations = known.pairs_of(plan)
    out = units.insert_at(known.made * (ENTRY + 8.0 * (2 + known.states)))
    pairs = combinations * (costs.pair + costs.fold * known.states + out)
    kept = sum(side_bytes(one, side) for one, side in zip(plan, known.sides, strict=True))
    return PricedPlan(plan, sides + pairs, sides, pairs, combinations, kept)


def _side_cost(early: bool, side: SideFigures, costs: JoinCosts, units: Costs) -> float:
    if early:
        stored = side.panes * side.pane_groups
        return side.records * _insert(side, units) + costs.merge * stored + costs.row * side.groups
    return side.records * costs.append + side.held * (costs.read + costs.row)


def _insert(side: SideFigures, units: Costs) -> float:
    """Of a record into the exact leaf of a side; where its groups are stored anyway, only what it keeps besides."""
    if side.stored == FREE:
        return 0.0
    if side.stored == SHARED:
        return units.fold * side.kept
    return units.insert_at(side.pane_groups * (ENTRY + side.key_bytes + side.state_bytes))


def side_bytes(early: bool, side: SideFigures) -> float:
    """Bytes of the rows that a side keeps in segments for its window; where they are kept anyway, none."""
    if early and side.stored == FREE:
        return 0.0
    rows = side.panes * side.pane_groups if early else side.held
    return rows * (side.key_bytes + side.state_bytes)
