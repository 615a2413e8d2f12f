"""Early or late, for each side of each join.

An *early* side is aggregated before it is stored: an exact relation. A *late* one is stored as it comes, a row for each
record, and meets the other sides like that. Which is which may change between any two batches: it is part of what a
version stores (`relations.storage`).
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.logical.query import Side, side_name
from penstock.relations.relation import APPEND, EXACT


@dataclass(frozen=True)
class SideTables:
    """`late` are the names of late sides, `query:alias`; all others are early."""

    late: frozenset[str] = frozenset()

    def of(self, query: str, side: Side) -> str:
        """The table that a side is stored by."""
        return APPEND if is_counted(side) or side_name(query, side.alias) in self.late else EXACT


ALL_EARLY = SideTables()


def is_counted(side: Side) -> bool:
    """Whether a side is the last records of its stream: they are stored one by one, whatever it costs."""
    return side.window.counted
