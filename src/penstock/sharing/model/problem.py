"""What a planner is given: queries, memory, statistics and unit costs (seed smap, Sec. 3.3, problem MA).

A `Problem` is free of where its figures come from: the paper's tables (`paper_problem`) or a running engine's
statistics.  `choice` solves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.sharing.graph.grain import Grain, letters
from penstock.sharing.graph.notation import name_letters
from penstock.sharing.model.eviction import Curve

# Tuples in the paper's synthetic data sets (seed smap, Sec. 8.1).
PAPER_ROWS = 1_000_000


@dataclass(frozen=True)
class Problem:
    """Symbols of the paper: `rows` n_e, `memory` M, `groups` g, `entry` h, `length` l_a, `probe` c1, `evict` c2.

    `memory` and `entry` are in one unit, words in the paper and bytes in the engine.  `length` is asked for a relation
    at a depth (1: fed by the stream), `evict` for queries only: what it costs to pass one entry on to the HFTA.
    `epoch` is w, the length of a query's epoch in any unit; where they differ, `rows` and `groups` are of one unit.

    Of seed aggregate-tree: `curve` is how a relation's table responds below a feeder (None: below the stream); without
    it, or where it gives None, tables are direct-mapped.  `passing` is what any entry costs that a table passes on,
    beside what it costs where it arrives, and `each` what a table costs for each tuple of the stream, whatever reaches
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
    epoch: Callable[[Grain], int] = lambda grain: 1
    curve: Callable[[Grain, Grain | None], Curve | None] | None = None
    passing: float = 0.0
    each: float = 0.0


def paper_problem(
    groups_by_letters: Mapping[str, float],
    queries: Iterable[str],
    memory: float,
    c1: float = 1,
    c2: float = 50,
    rows: float = PAPER_ROWS,
    length: float | Sequence[float] = 1,
    epochs: Mapping[str, int] | None = None,
) -> Problem:
    """A problem of the paper: an entry has one word for each attribute and one for the count (Sec. 6.4).

    `length` may be a list by depth, the last of which holds for all that are deeper; `epochs` has the lengths of the
    queries' epochs where they differ.
    """
    groups = {letters(name): float(count) for name, count in groups_by_letters.items()}
    spans = {letters(name): span for name, span in (epochs or {}).items()}
    lengths = [float(length)] if isinstance(length, (int, float)) else [float(each) for each in length]

    def groups_of(grain: Grain) -> float:
        if grain not in groups:
            raise KeyError(f"no number of groups is given for {name_letters(grain)}")
        return groups[grain]

    return Problem(
        queries=tuple(letters(query) for query in queries),
        rows=rows,
        memory=memory,
        groups=groups_of,
        entry=lambda grain: len(grain) + 1.0,
        length=lambda grain, depth: lengths[min(depth, len(lengths)) - 1],
        probe=lambda grain: c1,
        evict=lambda grain: c2,
        epoch=lambda grain: spans.get(grain, 1),
    )
