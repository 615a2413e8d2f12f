"""Queries with epochs of different lengths: when a relation is flushed, and how often (seed smap, Sec. 7.1).

A relation must be flushed at every multiple of the length of any query at or below it (Proposition 1); the pattern
repeats after a cycle.  `cost.per_cycle` prices it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from math import lcm

from penstock.sharing.configuration import Configuration
from penstock.sharing.grain import Grain


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
    needed = _not_dividing(lengths)
    span = cycle(lengths) if within is None else within
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


def flush_counts(configuration: Configuration, epoch: Callable[[Grain], int]) -> tuple[int, ...]:
    """n_R of every relation in one cycle of all queries."""
    nodes = configuration.nodes
    span = cycle(epoch(node.grain) for node in nodes if node.query)
    return tuple(
        flushes((epoch(nodes[j].grain) for j in configuration.below(i) if nodes[j].query), span)
        for i in range(len(nodes))
    )
