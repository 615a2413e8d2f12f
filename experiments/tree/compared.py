"""What `memory` has found, as its claims and tables look at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.tree.plans import TreePlan
from experiments.tree.streams import RecordStream
from experiments.tree.tables import CountedTree

WAYS = ("ours", "paper", "direct", "slc")
LABELS = {"ours": "FPTAS, Che", "paper": "FPTAS, Lemma 6.1", "direct": "direct-mapped, FPTAS", "slc": "SLC"}


@dataclass(frozen=True)
class WaysAtMemory:
    """All ways at one memory (before scaling): plans, SLC's before and after it was given a peak load, and what was
    counted over all epochs; in the epoch that was planned for, operations a record (`single`), and those of our tree
    with direct-mapped tables of as many entries (`mapped`); SLC planned from the start (`scratch`)."""

    queries: int
    memory: int
    planned: dict[str, TreePlan]
    plans: dict[str, TreePlan]
    counted: dict[str, CountedTree]
    single: dict[str, float]
    mapped: float
    scratch: CountedTree

    def share(self, way: str) -> float:
        """Hash operations over those of the naive way."""
        return self.counted[way].per_tuple / self.queries


@dataclass(frozen=True)
class Swept:
    """Costs a record at several sizes of memory: predicted, and counted in one epoch."""

    memory: tuple[float, ...]
    predicted: tuple[float, ...]
    counted: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        return [p / c for p, c in zip(self.predicted, self.counted, strict=True)]


@dataclass(frozen=True)
class Compared:
    """One stream. `kept`: one tree, allocated again for each size; `again`: each size planned from the tree of the one
    before; `anew`: each planned from the start."""

    records: RecordStream
    queries: tuple[str, ...]
    at: tuple[WaysAtMemory, ...]
    kept: Swept
    again: Swept
    anew: Swept

    @property
    def name(self) -> str:
        return self.records.name

    def totals(self, way: str) -> list[int]:
        return [one.counted[way].total for one in self.at]

    def parts(self, way: str, part: str) -> list[int]:
        return [getattr(one.counted[way], part) for one in self.at]

    def ratios(self, way: str, other: str) -> list[float]:
        return [a / b for a, b in zip(self.totals(way), self.totals(other), strict=True)]

    def to_scratch(self, way: str) -> list[float]:
        """Hash operations over those of SLC planned from the start, in the epoch that was planned for; `anew`: ours,
        planned from the start as well."""
        ours = self.anew.counted if way == "anew" else [one.single[way] for one in self.at]
        return [cost / one.scratch.per_tuple for cost, one in zip(ours, self.at, strict=True)]

    def of(self, memory: int) -> WaysAtMemory:
        return next(one for one in self.at if one.memory == memory)


def rise(costs: Sequence[float]) -> float:
    """How far any is above the least of those before it, as a share; 0 if none is.

    >>> rise([4.0, 2.0, 3.0, 2.5, 1.0])
    0.5
    """
    least = np.minimum.accumulate(np.array(costs))
    return max(0.0, float((np.array(costs[1:]) / least[:-1]).max() - 1))
