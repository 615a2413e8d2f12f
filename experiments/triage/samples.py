"""Groups of one window, estimated from picks: x, and one standard error of it, of all groups at once.

    error² = Σ_k 2^k (2^k − 1) (Q − S²/n) n/(n − 1)

S = Σ y and Q = Σ y² over a group's picks of one k, n all picks of this k in the window: the variance of a total from a
sample without replacement, 1 of 2^k, where picks outside the group have y = 0. (The data-triage paper has no errors of
single results.) An average has the residuals y − R as its y, and is divided by the estimated count (delta method).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.triage.picks import Picks

Groups = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Range = tuple[int, int]  # up to which record, and k


@dataclass(frozen=True)
class Window:
    """The records of a window: the group of each, from 0, and a value."""

    groups: Groups
    values: Floats
    number: int  # of groups

    @property
    def rows(self) -> int:
        return len(self.groups)

    def totals(self) -> Floats:
        return _sums(self.groups, self.values, self.number)

    def counts(self) -> Floats:
        return _sums(self.groups, np.ones(self.rows), self.number)

    def shuffled(self, rng: np.random.Generator) -> Window:
        order = rng.permutation(self.rows)
        return Window(self.groups[order], self.values[order], self.number)

    def of_ones(self) -> Window:
        """The same, to be counted."""
        return Window(self.groups, np.ones(self.rows), self.number)


@dataclass(frozen=True)
class Step:
    """What the picks of one k say of every group: how many there are, their sum and sum of squares; `size` is n."""

    k: int
    size: int
    picks: Floats
    total: Floats
    squares: Floats

    @property
    def factor(self) -> float:
        n = self.size
        return float("nan") if n < 2 else 2.0**self.k * (2.0**self.k - 1) * n / (n - 1)


@dataclass(frozen=True)
class Estimates:
    """By group; `picks` are records that were picked, at any k > 0."""

    x: Floats
    error: Floats
    picks: Floats


def read(window: Window, ranges: Sequence[Range], key: int) -> list[Step]:
    """The steps of a window whose first record is record 0 of the stream."""
    rows: dict[int, list[Groups]] = {}
    start = 0
    for stop, k in ranges:
        found = Picks(k, key).rows(start, stop) if k else np.arange(start, stop)
        rows.setdefault(k, []).append(found)
        start = stop
    return [_step(window, k, np.concatenate(found)) for k, found in rows.items()]


def _step(window: Window, k: int, rows: Groups) -> Step:
    groups, values = window.groups[rows], window.values[rows]
    picks, total, squares = (_sums(groups, one, window.number) for one in (np.ones(len(rows)), values, values * values))
    return Step(k, len(rows), picks, total, squares)


def _sums(groups: Groups, values: Floats, number: int) -> Floats:
    return np.asarray(np.bincount(groups, values, number), np.float64)


def totals(steps: Sequence[Step]) -> Estimates:
    """Sums; counts, where every value is one."""
    x, variance, picks = (np.zeros(len(steps[0].total)) for _ in range(3))
    for step in steps:
        x += step.total * 2.0**step.k
        if step.k:
            variance += step.factor * (step.squares - step.total**2 / step.size)
            picks += step.picks
    return Estimates(x, np.sqrt(np.maximum(variance, 0.0)), picks)


def averages(steps: Sequence[Step]) -> Estimates:
    """NaN for groups that nothing was read of."""
    counts = sum((step.picks * 2.0**step.k for step in steps), np.zeros(len(steps[0].total)))
    with np.errstate(invalid="ignore", divide="ignore"):
        x = totals(steps).x / counts
        variance = np.zeros(len(x))
        for step in (step for step in steps if step.k):
            residuals = step.total - x * step.picks
            squares = step.squares - 2 * x * step.total + x * x * step.picks
            variance += step.factor * (squares - residuals**2 / step.size)
        return Estimates(x, np.sqrt(np.maximum(variance, 0.0)) / counts, totals(steps).picks)
