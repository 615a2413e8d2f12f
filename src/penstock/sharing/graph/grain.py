"""Grains: what a relation groups by, and which relation can be computed from which.

A grain has one entry for each base attribute: how finely it is kept.  `src` is ("src", 129), `src/24` is
("src", 24), and a letter of the paper (seed smap) is ("A", 1).  A relation feeds another when every base of the
other is in it, at least as finely (seed smap, Sec. 2.5; prefixes are ours).  `feeding_graph` arranges grains,
`configuration` makes forests of them.
"""

from __future__ import annotations

Grain = frozenset[tuple[str, int]]
MISSING = -1  # less fine than a prefix of no bits


def feeds(fine: Grain, coarse: Grain) -> bool:
    """Whether entries of `fine` can be merged into entries of `coarse`; every grain feeds itself.

    >>> feeds(letters("ABC"), letters("AC")), feeds(letters("AC"), letters("ABC"))
    (True, False)
    >>> feeds(frozenset({("src", 129)}), frozenset({("src", 24)}))
    True
    """
    if coarse <= fine:
        return True
    kept = dict(fine)
    return all(kept.get(base, MISSING) >= fineness for base, fineness in coarse)


def union(*grains: Grain) -> Grain:
    """The coarsest grain that feeds all of these: every base as finely as any of them has it.

    >>> sorted(union(letters("AB"), letters("BC")))
    [('A', 1), ('B', 1), ('C', 1)]
    """
    finest: dict[str, int] = {}
    for grain in grains:
        for base, fineness in grain:
            finest[base] = max(fineness, finest.get(base, fineness))
    return frozenset(finest.items())


def letters(text: str) -> Grain:
    """A relation of the paper: each letter an attribute."""
    return frozenset((letter, 1) for letter in text)


def fineness(grain: Grain) -> int:
    """Greater for a relation than for any other that it feeds: sorts feeders first."""
    return sum(kept + 1 for _, kept in grain)  # a prefix of no bits still tells kinds of addresses apart
