"""Cuts and splits at places a source reaches cheaply: row groups of a file, blocks of a generator.

Used by the sources behind `sources.base.Source`; both functions are deterministic in their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from penstock.sources.base import Split, even_splits

# A split's edge may move this far, in mean split sizes, to meet a boundary. What is read twice elsewhere costs less
# than what the larger of two tasks keeps waiting: there, all that is done to its tuples counts.
SNAP = 0.02


def cut_at_boundary(start: int, limit: int, rows: int, last_before: Callable[[int], int]) -> int:
    """End of a micro-batch: the last boundary that leaves it more than half full, else exactly `limit` rows."""
    if start + limit >= rows:
        return rows
    boundary = last_before(start + limit)
    return boundary if 2 * (boundary - start) > limit else start + limit


def split_at_boundaries(start: int, stop: int, parallelism: int, nearest: Callable[[int], int]) -> list[Split]:
    """Even splits whose inner edges move to the nearest boundary where that keeps them balanced."""
    exact = even_splits(start, stop, parallelism)
    reach = SNAP * (stop - start) / max(1, len(exact))
    near = ((split.stop, nearest(split.stop)) for split in exact[:-1])
    edges = [start, *(there if abs(there - edge) <= reach else edge for edge, there in near), stop]
    return [Split(a, b) for a, b in pairwise(edges) if b > a]
