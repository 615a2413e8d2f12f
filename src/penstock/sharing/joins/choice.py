"""What was chosen for a join, and by what: data that stands in the plan of its first stream."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.logical.query import side_name
from penstock.sharing.joins.cost import PricedPlan
from penstock.sharing.joins.statistics import JoinStatistics

ASKED, UNKNOWN, ESTIMATED, CHEAPEST = "asked", "unknown", "estimated", "cheapest"


@dataclass(frozen=True)
class JoinChoice:
    """`early` says of every stream in `sides`, by alias, whether it is aggregated before it is stored. `why`: it was
    asked for; nothing is known of the streams; it is the cheapest by a first sample; it is the cheapest by what merge
    tasks counted. `considered` are all plans by cost, as far as `statistics` tell."""

    query: str
    sides: tuple[str, ...]
    early: tuple[bool, ...]
    why: str = UNKNOWN
    considered: tuple[PricedPlan, ...] = ()
    statistics: JoinStatistics | None = None

    @property
    def late(self) -> tuple[str, ...]:
        """The names of its late sides."""
        each = zip(self.sides, self.early, strict=True)
        return tuple(side_name(self.query, alias) for alias, early in each if not early)

    @property
    def priced(self) -> PricedPlan | None:
        """What the chosen plan is expected to take."""
        return next((one for one in self.considered if one.early == self.early), None)
