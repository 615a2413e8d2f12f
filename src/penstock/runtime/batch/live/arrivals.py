"""How much of a live stream waits after a batch, and how old it is: for observers."""

from __future__ import annotations

from penstock.runtime.batch.report import Arrival
from penstock.sources.live.contract import wall_time
from penstock.state.protocol import Offset, StreamOffset
from penstock.triage.picks import DROP

MICROSECONDS = 1_000_000


def of(offset: Offset, now: int) -> dict[str, Arrival]:
    """By stream that is live."""
    return {name: _arrival(one, now) for name, one in offset.streams.items() if one.clock is not None}


def _arrival(one: StreamOffset, now: int) -> Arrival:
    queued = max(0, (one.arrived or 0) - one.row)
    step = max((1 << k for _, k in one.ranges if k != DROP), default=1)
    if not queued or one.reached is None or one.clock is None:
        return Arrival(queued, one.rate or 0.0, 0.0, step)
    return Arrival(queued, one.rate or 0.0, (now - wall_time(one.clock, one.reached)) / MICROSECONDS, step)
