"""Cuts and splits at places that a source reaches cheaply: row groups of Parquet files, blocks of a generator.

Both functions are deterministic in their arguments, as `sources.base.Source` demands of `cut` and `splits`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from penstock.sources.base import Position, Split, even_splits

# A split's edge may move this far, in mean split sizes, to meet a boundary. What is read twice elsewhere costs less
# than what the larger of two tasks keeps waiting: there, all that is done to its records counts.
SNAP = 0.02


def cut_at_boundary(
    start: Position, limit: int, end: Position, last_before: Callable[[Position], Position]
) -> Position:
    """End of a micro-batch: the last boundary that leaves it more than half full, else exactly `limit` records."""
    full = Position(start + limit)
    if full >= end:
        return end
    boundary = last_before(full)
    return boundary if 2 * (boundary - start) > limit else full


def split_at_boundaries(
    start: Position, stop: Position, parallelism: int, nearest: Callable[[Position], Position]
) -> list[Split]:
    """Even splits whose inner edges move to the nearest boundary where that keeps them balanced."""
    exact = even_splits(start, stop, parallelism)
    reach = SNAP * (stop - start) / max(1, len(exact))
    near = ((split.stop, nearest(split.stop)) for split in exact[:-1])
    edges = [start, *(there if abs(there - edge) <= reach else edge for edge, there in near), stop]
    return [Split(a, b) for a, b in pairwise(edges) if b > a]
