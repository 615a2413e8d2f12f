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
    read: int


def shared(now: float, queues: Sequence[Queue], costs: Costs, seconds: float, most: int) -> Share:
    """At most so many seconds and records, for each stream as many as it has of all that wait.

    A stream whose windows would close without there being time for that is left out.
    """
    waiting = sum(queue.arrived - queue.start for queue in queues)
    left = max(0.0, seconds)
    taken: dict[str, list[tuple[int, float]]] = {}
    spent, closes, read = 0.0, 0, 0
    for queue in queues:
        own = queue.arrived - queue.start
        share = own / waiting if waiting else 1.0
        count = int(min(float(own), most * share, left * share / costs.full))
        stop, closed = _closing(now, queue, queue.start + count, left - spent, costs)
        if closed < 0:
            continue
        taken[queue.stream] = [(stop, 1.0)] if stop > queue.start else []
        spent += (stop - queue.start) * costs.full + closed * costs.close
        closes += closed
        read += stop - queue.start
    return Share(taken, spent, closes, read)


def _closing(now: float, queue: Queue, stop: int, seconds: float, costs: Costs) -> tuple[int, int]:
    """Where the stream is left, and how many instants close there; -1 if they would without a record."""
    closes = 0
    for due in queue.dues:
        end = max(queue.start, min(due.stop, queue.arrived))
        if end > stop or (due.ready > now and due.stop > queue.arrived):
            break
        spare = seconds - costs.close * (closes + 1)
        if (end - queue.start) * costs.full > spare:
            return (end - 1, closes) if end > queue.start else (queue.start, -1)
        stop = max(end, min(stop, queue.start + int(min(spare / costs.full, 1e18))))
        closes += 1
    return stop, closes
