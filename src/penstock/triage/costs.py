"""What batches cost, measured while they run."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.triage.plan import Costs

AT_FIRST = Costs(batch=0.3, full=2e-6, skip=2e-7, close=0.3)


@dataclass(frozen=True)
class BatchTimes:
    """What a batch did, and the seconds that it took."""

    read: int
    left: int
    instants: int
    compacted: bool
    tasks: float
    closing: float
    whole: float


@dataclass(frozen=True)
class Estimator:
    """The costs so far."""

    costs: Costs = AT_FIRST

    def after(self, one: BatchTimes) -> Estimator:
        """With one batch more."""
        return self
