"""What a planner must know of a kind of table: the type of the objects in `direct`, `lru` and their like.

Kinds compare by name.  They hold functions of modules only, so they can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.collision import occupied as full
from penstock.sharing.model.eviction import Curve
from penstock.sharing.model.statistics import Statistics
from penstock.sharing.model.unit_costs import Costs


@dataclass(frozen=True)
class Replacement:
    """Which entry leaves a table where a newcomer finds no room; `says` is the sentence of `explain`."""

    name: str
    says: str


@dataclass(frozen=True)
class TableKind:
    """A kind of table of bounded size.

    `replacements` are all that it knows, `replacement` names the one for flows of a length.  An entry takes `links`
    bytes beside its key and states.  `probe` gives nanoseconds by the bytes of the table.

    `curve` tells what a table passes on of what reaches it: by statistics, its own grain, that of its feeder (None: the
    stream) and the share of the records that it takes.  None: it collides as a direct-mapped table does, by groups,
    flow length and turns alone (`figures.responses`, `engine_problem.EngineProblem`).

    A kind that `fills` takes its entries one after the other, as groups come: it evicts nothing before all are taken,
    never touches those that no group needs, and at the end flushes one for each group. Where groups come in turns it
    loses all of them once they are one too many, so it is worth giving it what is left of the memory.
    """

    name: str
    replacements: tuple[Replacement, ...] = field(compare=False)
    replacement: Callable[[float], str] = field(compare=False)
    links: int = field(compare=False)
    probe: Callable[[Costs, float], float] = field(compare=False)
    curve: Callable[[Statistics, Grain, Grain | None, float], Curve] | None = field(compare=False)
    fills: bool = field(compare=False)

    def touched(self, space: float, needed: float) -> float:
        """Bytes of its space that it works on, of those that its groups need."""
        return min(space, needed) if self.fills else space

    def flushed(self, buckets: float, groups: float, occupied: float) -> float:
        """Entries that leave at the end of a task; `occupied` as the model has it (`figures.responses`)."""
        return min(buckets, groups) if self.fills else min(occupied, full(groups, buckets))
