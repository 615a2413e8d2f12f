"""Keep the end of an epoch within a limit: E_e <= E_p (seed smap, Sec. 3.2.3 and 8.5.2).

All tables are flushed at once, so their sizes make a peak of load.  `shrink` makes all tables smaller by one factor,
`shift` moves space from queries, whose entries leave at c2, to phantoms; `within_peak` takes the cheaper that meets the
limit.  What a flush costs is given to them: a `Load`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.sharing.graph.configuration import Configuration

Spaces = tuple[float, ...]
Load = Callable[[Sequence[float]], float]  # what something costs with tables of these spaces
# How finely a share is searched for: whole hundredths first, then halves.
HUNDREDTHS = 100
HALVINGS = 30


def shrink(spaces: Sequence[float], load: Load, limit: float) -> Spaces:
    """All spaces times one factor, as large as the limit allows.

    The factor is found numerically: smaller tables collide more, so E_e falls more slowly than they shrink.
    """

    def smaller(share: float) -> Spaces:
        return tuple((1.0 - share) * space for space in spaces)

    found = _least_share(lambda share: load(smaller(share)) <= limit)
    return smaller(1.0 if found is None else found)  # no tables at all have nothing to flush


def shift(configuration: Configuration, spaces: Sequence[float], load: Load, limit: float) -> Spaces | None:
    """The same share of every query's space moved to the phantoms, by their size; None where none meets the limit.

    With less space a query passes on more of what is flushed into it, so E_e may even rise.
    """
    phantoms = [not node.query for node in configuration.nodes]
    in_phantoms = sum(space for space, phantom in zip(spaces, phantoms, strict=True) if phantom)
    in_queries = sum(spaces) - in_phantoms
    if not in_phantoms:
        return None

    def moved(share: float) -> Spaces:
        growth = 1.0 + share * in_queries / in_phantoms
        return tuple(
            space * (growth if phantom else 1.0 - share) for space, phantom in zip(spaces, phantoms, strict=True)
        )

    # A query that keeps nothing has no table: that is no shift any more.
    found = _least_share(lambda share: share < 1.0 and load(moved(share)) <= limit)
    return None if found is None else moved(found)


def within_peak(configuration: Configuration, spaces: Sequence[float], load: Load, limit: float, cost: Load) -> Spaces:
    """The spaces, changed only if their peak is above the limit: by shrink or shift, whichever costs less."""
    if load(spaces) <= limit:
        return tuple(spaces)
    tried = (shrink(spaces, load, limit), shift(configuration, spaces, load, limit))
    return min((found for found in tried if found is not None), key=cost)


def _least_share(meets: Callable[[float], bool]) -> float | None:
    """The least share in [0, 1] that meets a limit, which it need not do steadily; None if none is found."""
    if meets(0.0):
        return 0.0
    first = next((step for step in range(1, HUNDREDTHS + 1) if meets(step / HUNDREDTHS)), None)
    if first is None:
        return None
    below, found = (first - 1) / HUNDREDTHS, first / HUNDREDTHS
    for _ in range(HALVINGS):
        middle = (below + found) / 2
        below, found = (below, middle) if meets(middle) else (middle, found)
    return found
