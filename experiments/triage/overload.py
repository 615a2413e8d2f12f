"""What a window's counts are off by when more comes than can be read: four ways to leave records out.

| way | reads |
| --- | --- |
| one step | 1 of 2^k over the whole window, the least k that fits |
| the same, any step | 1 of the overload, also where that is no power of two |
| exact first | all records until the time is up, and a reservoir of 4,096 of the rest |
| dropping | all records until the time is up; the rest does not count |
| dropping, re-weighted | the same; what was read counts overload times |

Each may read a part 1/overload of the window; the reservoir comes on top. RMSE is over all groups of the window: root
mean square of (actual − reported), a group without a record that is read is reported as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.triage.reservoir import reservoir
from experiments.triage.samples import Floats, Groups, Window, read, totals
from penstock.triage.picks import exact_ends

ROWS, GROUPS, RESERVOIR, TRIALS = 400_000, 5_000, 4_096, 40
OVERLOADS = (2, 5, 10)
Way = Callable[[Window, int, np.random.Generator], Floats]


@dataclass(frozen=True)
class Off:
    """RMSE of a way by overload, over all trials."""

    way: str
    rmse: tuple[float, ...]


def zipf(groups: int, exponent: float) -> Floats:
    weights = np.arange(1, groups + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum(), np.float64)


def steady(rng: np.random.Generator, rows: int = ROWS, groups: int = GROUPS) -> Groups:
    """Zipf 1, every record drawn by itself."""
    return rng.choice(groups, rows, p=zipf(groups, 1.0)).astype(np.int64)


def turning(rng: np.random.Generator, rows: int = ROWS, groups: int = GROUPS) -> Groups:
    """The same popularity, of other groups in the last half of the window."""
    found = steady(rng, rows, groups)
    found[rows // 2 :] = rng.permutation(groups)[found[rows // 2 :]]
    return found


def one_step(window: Window, overload: int, rng: np.random.Generator) -> Floats:
    k = (overload - 1).bit_length()
    key = int(rng.integers(1 << 63))
    return totals(read(window, list(exact_ends(0, window.rows, k)), key)).x


def any_step(window: Window, overload: int, rng: np.random.Generator) -> Floats:
    blocks = window.rows // overload
    rows = np.arange(blocks) * overload + rng.integers(overload, size=blocks)
    return np.asarray(np.bincount(window.groups[rows], minlength=window.number) * float(overload), np.float64)


def exact_first(window: Window, overload: int, rng: np.random.Generator) -> Floats:
    exact = window.rows // overload
    rest = window.rows - exact
    held = exact + reservoir(rest, RESERVOIR, rng)
    estimated = np.bincount(window.groups[held], minlength=window.number) * (rest / len(held))
    return np.asarray(dropping(window, overload, rng) + estimated, np.float64)


def dropping(window: Window, overload: int, rng: np.random.Generator) -> Floats:
    return np.bincount(window.groups[: window.rows // overload], minlength=window.number).astype(np.float64)


def reweighted(window: Window, overload: int, rng: np.random.Generator) -> Floats:
    return dropping(window, overload, rng) * overload


WAYS: dict[str, Way] = {
    "one step, a power of two": one_step,
    "one step, any": any_step,
    "exact first, then a reservoir": exact_first,
    "dropping": dropping,
    "dropping, re-weighted": reweighted,
}


def errors(
    draw: Callable[[np.random.Generator], Groups], seed: int, trials: int = TRIALS, groups: int = GROUPS
) -> list[Off]:
    """RMSE of every way on the same windows, one for each trial."""
    rng = np.random.default_rng(seed)
    squares = {way: np.zeros(len(OVERLOADS)) for way in WAYS}
    for _ in range(trials):
        found = draw(rng)
        window = Window(found, np.ones(len(found)), groups)
        truth = window.counts()
        for way, report in WAYS.items():
            squares[way] += [float(np.mean((report(window, x, rng) - truth) ** 2)) for x in OVERLOADS]
    return [Off(way, tuple(np.sqrt(found / trials).tolist())) for way, found in squares.items()]
