"""Chained tables that evict the least recently used, and only when they are full, as in seed aggregate-tree."""

from __future__ import annotations

from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.eviction import Che, Curve, Taken, in_turns
from penstock.sharing.model.kinds.kind import Replacement, TableKind
from penstock.sharing.model.statistics import Statistics
from penstock.sharing.model.unit_costs import Costs

RECENT = "lru"
LEAST_SHARE = 1e-6  # of the records, where the sample has none that a query chooses


def _replacement(length: float) -> str:
    return RECENT


def _curve(known: Statistics, grain: Grain, feeder: Grain | None, share: float) -> Curve:
    """What comes close together in the stream, the first table absorbs; the panes of a task come in turns."""
    turns = known.turns(grain)
    found = Che(known.popularity(grain, feeder), known.rows / turns)
    flows = known.locality(grain) if feeder is None else 1.0
    return Taken(in_turns(found, turns), max(share, LEAST_SHARE), flows)


LRU = TableKind(
    "lru",
    replacements=(Replacement(RECENT, "when it is full the least recently used makes room"),),
    replacement=_replacement,
    links=36,  # chain and place in the order of use (`kernels.tables.lru`)
    probe=Costs.recent_at,
    curve=_curve,
    fills=True,
)
