"""What a plan of a join costs on this machine: nanoseconds a slide, and bytes of state.

The engine keeps no running result, so its cost is not the paper's (seed aggregation-join, Sec. 4, which the experiments
have): tasks write panes, and merge tasks join them, the instants of an item together. For plan e ∈ {0, 1}^m:

    C_e = Σ_i [ e_i: λ_i·insert(bytes) + d_i·ω + σ_i·n_i·d_i·β;  else: λ_i·(a + ω) + σ_i·w_i·β ] + τ·N_e·(π + φ·states)

    N_e = Σ_J Π_i x_i(J),  x_i = n_i·d_i if e_i else w_i

| symbol | here |
| --- | --- |
| λ_i, w_i | records of side i in a slide, and in its window (`SideFigures.records`, `held`) |
| n_i, d_i | panes of the window, groups of a pane; n_i·d_i is `rows`, D_i of the window `groups` |
| N_e | combinations of rows (`JoinStatistics.pairs_of` has them with D_i for n_i·d_i) |
| σ_i, τ | what of its rows, and of the combinations, an instant has to bear: several are joined together |
| insert, a | a record into an exact table of so many bytes (`sharing.model.unit_costs.Costs`), or just kept |
| ω | a row that is written (`JoinCosts.write`) |
| β | a stored row that is read and given its key (`JoinCosts.row`) |
| π, φ | a combination, and an aggregate of it (`JoinCosts.pair`, `fold`) |

Two ways of the engine differ from that. Where keys and groups are few, rows are put into an array with a cell for every
one of them and cells are combined, not rows: it takes what is cheaper (`cell`, `cell_pair`). Joins of more than two
streams, with tables or with conditions on pairs merge the rows of each window first (`merge`, μ): then x_i = D_i for
all sides, and a combination costs what it does there (`combined`, `folded`), with insert(out) for its group.

`runtime.planning.join_costs` measures the constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

from penstock.sharing.joins.statistics import FREE, SHARED, JoinStatistics, SideFigures
from penstock.sharing.model.unit_costs import Costs

ENTRY = 16.0  # bytes of an exact table for each group, besides key and states
MOST_PLACES, FEW_PLACES, SPARSE, MOST_CELLS = 1 << 21, 1 << 16, 4.0, 1 << 22  # as `runtime.merge.join.folding` has them


@dataclass(frozen=True)
class JoinCosts:
    """Nanoseconds; see above."""

    append: float
    write: float
    row: float
    pair: float
    fold: float
    cell: float
    cell_pair: float
    merge: float
    combined: float
    folded: float


# Of a server core of 2023, for machines that cannot be calibrated.
USUAL = JoinCosts(
    append=4.0, write=18.0, row=45.0, pair=0.5, fold=3.5, cell=1.2, cell_pair=0.9, merge=50.0, combined=20.0, folded=5.0
)


@dataclass(frozen=True)
class PricedPlan:
    """What a plan is expected to take: `cost` ns a slide, of which `tasks` store records, `rows` are read and
    `combined`; `combinations` of rows an instant bears, and `bytes` of state."""

    early: tuple[bool, ...]
    cost: float
    tasks: float
    rows: float
    combined: float
    combinations: float
    bytes: float


def priced(early: Sequence[bool], known: JoinStatistics, costs: JoinCosts, units: Costs) -> PricedPlan:
    """C_e of a plan, and the bytes that it keeps."""
    plan = tuple(early)
    each = list(zip(plan, known.sides, strict=True))
    tasks = sum(_stored_cost(one, side, costs, units) for one, side in each)
    read = [_rows(one, side) * _read(side, known.together) for one, side in each]
    combinations = _combinations(plan, known)
    joined = _living(combinations, known, costs) if known.living else inf
    if joined < inf:
        rows = costs.row * sum(read)
    else:
        combinations = known.pairs_of((True,) * len(plan))
        rows = costs.merge * sum(read)
        out = units.insert_at(known.made * (ENTRY + 8.0 * (2 + known.states)))
        joined = combinations * (costs.combined + costs.folded * known.states + out)
    kept = sum(side_bytes(one, side) for one, side in each)
    return PricedPlan(plan, tasks + rows + joined, tasks, rows, joined, combinations, kept)


def _rows(early: bool, side: SideFigures) -> float:
    """Stored rows of a side's window."""
    return side.rows if early else side.held


def _read(side: SideFigures, together: float) -> float:
    """σ_i: of k instants, whose windows have n panes each, n + k − 1 panes are read once."""
    return (side.panes + together - 1) / (side.panes * together)


def _combinations(early: Sequence[bool], known: JoinStatistics) -> float:
    """τ·N_e. Windows that do not overlap have nothing in common; of others, rows of all instants meet at once."""
    found = known.pairs_of(early)
    for one, side in zip(early, known.sides, strict=True):
        found *= side.rows / max(1.0, side.groups) if one else 1.0
    if all(side.panes <= 1 for side in known.sides):
        return found
    return found * prod(_read(side, known.together) * known.together for side in known.sides) / known.together


def _living(combinations: float, known: JoinStatistics, costs: JoinCosts) -> float:
    """Rows as they are stored: by pairs, or by cells where those are cheaper; infinite where there is room for
    neither."""
    aggregates, groups = 1 + known.states, prod(side.codes for side in known.sides)
    lives = [side.panes + known.together - 1 for side in known.sides]
    whole = combinations * known.together
    places = groups * min(lives) * aggregates
    few = places <= MOST_PLACES and places <= SPARSE * max(whole * aggregates, FEW_PLACES)
    pairs = combinations * (costs.pair + costs.fold * aggregates) + costs.cell * places / known.together
    cells = sum((1 + side.kept) * many * known.keys * side.codes for side, many in zip(known.sides, lives, strict=True))
    if cells > MOST_CELLS or groups * aggregates > MOST_PLACES:
        return pairs if few else inf
    filled = known.keys * groups
    return min(pairs if few else inf, costs.cell * cells + costs.cell_pair * filled * aggregates)


def _stored_cost(early: bool, side: SideFigures, costs: JoinCosts, units: Costs) -> float:
    """Of the records of a slide, in tasks."""
    if not early:
        return side.records * (costs.append + costs.write)
    if side.stored == FREE:
        return 0.0
    if side.stored == SHARED:
        return side.records * units.fold * side.kept
    written = side.rows * side.records / max(1.0, side.held)
    return side.records * units.insert_at(written * (ENTRY + 8.0 * (2 + side.kept))) + written * costs.write


def side_bytes(early: bool, side: SideFigures) -> float:
    """Bytes of the rows that a side keeps in segments for its window; where they are kept anyway, none."""
    return 0.0 if early and side.stored == FREE else _rows(early, side) * side.width
