"""How the panes of a stream follow one another, by a sample: in how many *turns* a task goes through its groups.

Groups of different panes are different groups. But panes come one after the other in time, so a table that is too small
for all groups of a task may well hold those of a pane: what it does with the panes of a task is what it does with one,
times their number (seed smap, Sec. 7, has an epoch for each pane). Records out of order keep several panes alive at a
time; then there are fewer turns than panes.

    turns = panes of the task / panes alive at a time

A pane that comes all in a row takes as large a part of the positions as it has of the records; the mean distance from
its middle is a quarter of that. Where it comes in turns with others it takes more: by that factor they are alive
together. The panes of the task follow from how far the middle pane of a block of the sample moves on from the first
block to the last, since blocks are from all over the task. A sample of its first records alone, as the first one of a
source that cannot be read from the middle, tells of too few turns, never of too many.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Array = np.ndarray
ONE_MORE = 1.5  # blocks: panes that differ by no more may well be equal, met by one run of records more or less


@dataclass(frozen=True)
class Turns:
    """Of a sample that has `met` so many panes: as different as `even` equal ones, `alive` of them at a time. They move
    on by `moved` from the beginning of the task to its end."""

    even: float
    met: int
    alive: float
    moved: float

    @property
    def sampled(self) -> float:
        """Of the sample itself."""
        return max(1.0, self.even / self.alive)

    def of(self, factor: float, tasks: float = 1.0) -> float:
        """Of a task that has `factor` times as many records as the sample, which is from all over so many."""
        panes = max(float(self.met), min(self.moved, self.met * factor * tasks)) / tasks
        return max(1.0, self.even * panes / self.met / self.alive)


ONE_TURN = Turns(1.0, 1, 1.0, 0.0)


def turns_of(panes: Array, blocks: int) -> Turns:
    """Of the pane numbers of a sample's records, in their order, in blocks from all over the task."""
    found, pane, counts = np.unique(panes.astype(np.int64), return_inverse=True, return_counts=True)
    n = len(panes)
    if len(found) < 2 or n < blocks:
        return ONE_TURN
    at, share = np.arange(n), counts / n
    away = np.bincount(pane, np.abs(at - (np.bincount(pane, at) / counts)[pane])) / counts
    taken = np.maximum(share, np.minimum(1.0, 4.0 * away / n))
    even = 1.0 / float(share @ share)
    edges = np.linspace(0, n, blocks + 1).astype(np.int64)
    middles = [float(np.median(panes[low:high])) for low, high in pairwise(edges)]
    moved = max(0.0, middles[-1] - middles[0]) * blocks / (blocks - 1)
    alive = max(1.0, even * float(share @ taken))
    alike = counts.max() - counts.min() <= ONE_MORE * n / blocks
    return Turns(float(len(found)) if alike else even, len(found), alive, moved)


def lasting(times: Array, blocks: int) -> float:
    """How long the records lasted that these are times of, in their order, from all over: from the middle of the first
    block to that of the last, whatever is late in them."""
    if len(times) < blocks:
        return 0.0
    first, *_, last = np.array_split(times, blocks)
    return max(0.0, float(np.median(last)) - float(np.median(first))) * blocks / (blocks - 1)


def every(values: Array, turns: float) -> Array:
    """As many of these as one turn has, the large and the small alike."""
    if turns <= 1.0 or not len(values):
        return values
    ordered = np.sort(values)[::-1]
    places = ((np.arange(max(1, round(len(values) / turns))) + 0.5) * turns).astype(np.int64)
    return ordered[np.minimum(places, len(values) - 1)]


def quickest(found: Iterable[Turns]) -> Turns:
    """Of several kinds of panes, those that change most often tell the others."""
    return max(found, key=lambda one: one.sampled, default=ONE_TURN)
