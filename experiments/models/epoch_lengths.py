"""Queries with epochs of different lengths: when a relation is flushed, and how often (seed smap, Sec. 7.1).

A relation must be flushed at every multiple of the length of any query at or below it (Proposition 1); the pattern
repeats after a cycle.  `costs.cycle_cost` prices it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import lcm

from penstock.sharing.graph.configuration import STREAM


def cycle(lengths: Iterable[int]) -> int:
    """γ = lcm of the epochs' lengths.

    >>> cycle([2, 3, 5])
    30
    """
    return lcm(*lengths)


def flushes(lengths: Iterable[int], within: int | None = None) -> int:
    """n_R, Eq. 24: how many times up to `within` (their cycle, if not told) are a multiple of any of these lengths.

    By inclusion and exclusion over subsets.  A multiple of another length adds no times of its own and is left out
    first, for subsets double with every length.

    >>> flushes([2, 3, 5]), flushes([2, 3, 5, 6, 10]), flushes([2, 3], within=30)
    (22, 22, 20)
    """
    lengths = list(lengths)
    return _flushes(tuple(_not_dividing(lengths)), cycle(lengths) if within is None else within)


@lru_cache(maxsize=4096)  # a choice of phantoms asks for the same few sets of lengths again and again
def _flushes(needed: tuple[int, ...], span: int) -> int:
    return sum(
        (-1) ** (size + 1) * (span // lcm(*subset))
        for size in range(1, len(needed) + 1)
        for subset in combinations(needed, size)
    )


def _not_dividing(lengths: Iterable[int]) -> list[int]:
    kept: list[int] = []
    for length in sorted(set(lengths)):
        if not any(length % shorter == 0 for shorter in kept):
            kept.append(length)
    return kept


def flush_counts(parents: Sequence[int], lengths: Sequence[int]) -> list[int]:
    """n_R of every node in one cycle of all queries; `lengths` are their epochs, 0 for phantoms."""
    below: list[set[int]] = [{length} if length else set() for length in lengths]
    for i in range(len(parents) - 1, -1, -1):
        if parents[i] != STREAM:
            below[parents[i]] |= below[i]
    span = cycle(length for length in lengths if length)
    return [flushes(needed, span) for needed in below]
