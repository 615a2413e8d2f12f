"""What batches cost, measured while they run.

A batch's seconds are those of its tasks (a constant, records read, records left unread), of its merge (a constant, the
instants that closed) and a rest. Each is a sum of *terms*, so many times each. A filter keeps the terms' logarithms and
how unsure they are of each other (Kalman's, relinearised): a batch that left most records unread says what those cost
and next to nothing about the others; until there is one, they cost a tenth of those that are read, whatever that is.
Costs start anywhere and stay positive. A stall of the machine is believed no more than a few deviations, so it passes;
a machine that has become slower is believed after some batches.

Costs are these averages, and two deviations of a batch as its margin. An `Estimate` is data, for the manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np

from penstock.triage.plan import Costs

PACE = 0.15  # the weight of a batch, once there are some
STEADY = 0.1  # the same, of how much batches vary: a margin that sways costs more than one that is a little too great
BIAS, SWAYS = 0.3, 0.9  # how soon batches that all stray to one side are believed, and what luck alone may do
APART = 0.3  # how much less terms drift apart than all of them together
TRUST = 3.0  # deviations that a batch is believed
DOUBT = 0.1  # the least deviation, for that
MARGIN = 1.75  # deviations
WIDEST = 0.7  # the logarithm of the greatest margin: twice the average
FIRST_ROWS = 1_000
GROWTH = 8  # of a batch, against the greatest that was measured
LEAST = 1e-12  # seconds, of anything
ROUNDS = 12  # of relinearising


@dataclass(frozen=True)
class Fit:
    """Terms in seconds; the covariance of their logarithms, by rows; how far measurements stray from the sum, and to
    which side the newest did."""

    terms: tuple[float, ...]
    unsure: tuple[float, ...]
    stray: float = 0.22
    lean: float = 0.0

    @property
    def margin(self) -> float:
        return exp(min(MARGIN * self.stray, WIDEST))


@dataclass(frozen=True)
class Timing:
    """One batch, in seconds of wall time; `tasks` and `merge` are parts of `whole`, from its plan to its results.

    `interval` lasts until the scheduler could be asked again. `closed` counts instants; `compacted`: its merge also
    made segments smaller, which is no part of what a close costs.
    """

    read: int
    left: int
    closed: int
    compacted: bool
    tasks: float
    merge: float
    whole: float
    interval: float


# A record's cost is known to a few orders of magnitude, that of one left unread to a third of it.
TASKS = Fit((0.1, 2e-6, 2e-7), (1.0, 0.0, 0.0, 0.0, 16.0, 16.0, 0.0, 16.0, 16.5))
MERGE = Fit((0.1, 0.3), (1.0, 0.0, 0.0, 1.0))
REST = Fit((0.1,), (1.0,))
COMPACTION = Fit((0.3,), (1.0,))


@dataclass(frozen=True)
class Estimate:
    """What is known of batches; `most_read` is the greatest number of records that one of them has read."""

    tasks: Fit = TASKS
    merge: Fit = MERGE
    rest: Fit = REST
    compaction: Fit = COMPACTION  # of one, in seconds
    most_read: int = 0


def measured(known: Estimate, batch: Timing) -> Estimate:
    """What is known after one more batch."""
    rest = max(batch.whole, batch.interval) - batch.tasks - batch.merge
    found = replace(
        known,
        tasks=learnt(known.tasks, (1, batch.read, batch.left), batch.tasks),
        rest=learnt(known.rest, (1,), rest),
        most_read=max(known.most_read, batch.read),
    )
    if not batch.compacted:
        return replace(found, merge=learnt(known.merge, (1, batch.closed), batch.merge))
    constant, close = known.merge.terms
    return replace(found, compaction=learnt(known.compaction, (1,), batch.merge - constant - batch.closed * close))


def costs(known: Estimate) -> Costs:
    """What the scheduler plans with."""
    tasks, merge, rest = known.tasks, known.merge, known.rest
    start, full, skip = tasks.terms
    constant, close = merge.terms
    batch, beside = start + constant + rest.terms[0], constant + close + rest.terms[0]
    varies = ((constant + close) * merge.margin + rest.terms[0] * rest.margin) / beside
    return Costs(batch, full, min(skip, full), close, max(tasks.margin, varies))


def compaction(known: Estimate) -> float:
    """The slack that a compaction needs."""
    return known.compaction.terms[0] * known.compaction.margin


def rows(known: Estimate, batch_rows: int) -> int:
    """How many records a batch may read: few at first, since nothing is known of this machine and these queries."""
    return min(batch_rows, max(FIRST_ROWS, GROWTH * known.most_read))


def learnt(known: Fit, counts: Sequence[int], seconds: float) -> Fit:
    """The terms after a measurement of their sum, each so many times."""
    before = np.log(known.terms)
    unsure = np.reshape(known.unsure, (len(before), len(before)))
    noise = max(known.stray, DOUBT) ** 2
    predicted, shares = _predicted(before, counts)
    doubt = float(shares @ unsure @ shares)
    most = TRUST * sqrt(doubt + noise)
    error = max(-most, min(most, log(max(seconds, LEAST)) - predicted))
    logs = before
    for _ in range(ROUNDS):
        guess, shares = _predicted(logs, counts)
        gain = unsure @ shares / (shares @ unsure @ shares + noise)
        aim = before + gain * (predicted + error - guess - shares @ (before - logs))
        logs = logs + np.clip(aim - logs, -1.0, 1.0)
    lean = (1 - BIAS) * known.lean + BIAS * error
    drift = PACE**2 * noise + max(0.0, abs(lean) - SWAYS * sqrt(noise)) ** 2
    unsure = unsure - np.outer(gain, shares @ unsure) + drift * (np.eye(len(logs)) * APART**2 + 1)
    stray = sqrt((1 - STEADY) * known.stray**2 + STEADY * max(0.0, error**2 - doubt))
    terms = tuple(float(one) for one in np.maximum(np.exp(logs), LEAST))
    return Fit(terms, tuple(float(one) for one in unsure.ravel()), stray, lean)


def _predicted(logs: np.ndarray, counts: Sequence[int]) -> tuple[float, np.ndarray]:
    """The logarithm of the sum, and each term's share of it."""
    parts = np.exp(logs) * counts
    return log(parts.sum()), parts / parts.sum()
