"""Streams without promises: read in full, in the time that the others leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.triage.plan import Costs, Queue


@dataclass(frozen=True)
class Share:
    """What a batch takes of them: by stream, in the form of `ranged`."""

    taken: Mapping[str, list[tuple[int, float]]]
    spent: float
    closes: int


def shared(now: float, queues: Sequence[Queue], costs: Costs, seconds: float, most: int) -> Share:
    """At most so many seconds and records, for each stream as many as it has of all that wait."""
    waiting = sum(queue.arrived - queue.start for queue in queues)
    count = min(float(waiting), float(most), max(0.0, seconds) / costs.full)
    taken: dict[str, list[tuple[int, float]]] = {}
    records = closes = 0
    for queue in queues:
        own = queue.arrived - queue.start
        stop = queue.start + (own if count >= waiting else int(count * own / waiting))
        stop, closed = _closing(now, queue, stop, seconds - closes * costs.close, costs)
        closes += closed
        records += stop - queue.start
        if stop > queue.start:
            taken[queue.stream] = [(stop, 1.0)]
    return Share(taken, records * costs.full + closes * costs.close, closes)


def _closing(now: float, queue: Queue, stop: int, seconds: float, costs: Costs) -> tuple[int, int]:
    """Where the stream is left, and how many closes that means: none that there is no time for."""
    closes = 0
    for due in queue.dues:
        end = min(due.stop, queue.arrived)
        if end > stop or (due.ready > now and due.stop > queue.arrived):
            break
        if costs.close * (closes + 1) > seconds:
            return max(queue.start, end - 1), closes
        closes += 1
    return stop, closes
