"""Problems of the papers: relations named by letters, entries in words, unit costs c1 and c2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.sharing.graph.grain import Grain, letters
from penstock.sharing.graph.notation import name_letters
from penstock.sharing.model.problem import Problem

# Records in the paper's synthetic data sets (seed smap, Sec. 8.1).
PAPER_ROWS = 1_000_000


def paper_problem(
    groups_by_letters: Mapping[str, float],
    queries: Iterable[str],
    memory: float,
    c1: float = 1,
    c2: float = 50,
    rows: float = PAPER_ROWS,
    length: float | Sequence[float] = 1,
) -> Problem:
    """A problem of the paper: an entry has one word for each attribute and one for the count (Sec. 6.4).

    `length` may be a list by depth, the last of which holds for all that are deeper.
    """
    groups = {letters(name): float(count) for name, count in groups_by_letters.items()}
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
    )
