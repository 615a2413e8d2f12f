"""What a planner is given: queries, memory, statistics and unit costs (seed smap, Sec. 3.3, problem MA).

A `Problem` does not say where its figures come from: statistics of a running engine (`engine_problem`) or tables of a
paper.  `sharing.choose` solves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.eviction import Curve


@dataclass(frozen=True)
class Problem:
    """Symbols of the paper: `rows` n_e, `memory` M, `groups` g, `entry` h, `length` l_a, `probe` c1, `evict` c2.

    `memory` and `entry` are in one unit, words in the paper and bytes in the engine.  `length` is asked for a relation
    at a depth (1: fed by the stream), `evict` for queries only: what it costs to pass one entry on to the leaf (the
    paper: the HFTA).

    Of seed aggregate-tree: `curve` is how a relation's table responds below a feeder (None: below the stream); without
    it, or where it gives None, tables are direct-mapped.  `passing` is what any entry costs that a table passes on,
    beside what it costs where it arrives, and `each` what a table costs for each record of the stream, whatever reaches
    it; both are 0 in the papers.
    """

    queries: tuple[Grain, ...]
    rows: float
    memory: float
    groups: Callable[[Grain], float]
    entry: Callable[[Grain], float]
    length: Callable[[Grain, int], float]
    probe: Callable[[Grain], float]
    evict: Callable[[Grain], float]
    curve: Callable[[Grain, Grain | None], Curve | None] | None = None
    passing: float = 0.0
    each: float = 0.0
