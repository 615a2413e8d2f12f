"""What was chosen for a join, and by what: data that stands in the plan of its first stream."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.logical.query import side_name

ASKED, UNKNOWN, CHEAPEST = "asked", "unknown", "cheapest"


@dataclass(frozen=True)
class JoinChoice:
    """`early` says of every stream in `sides`, by alias, whether it is aggregated before it is stored. `why`: it was
    asked for; nothing is known of the streams; it is the cheapest."""

    query: str
    sides: tuple[str, ...]
    early: tuple[bool, ...]
    why: str = UNKNOWN

    @property
    def late(self) -> tuple[str, ...]:
        """The names of its late sides."""
        each = zip(self.sides, self.early, strict=True)
        return tuple(side_name(self.query, alias) for alias, early in each if not early)
