"""Dice for the generator of random apps: everything drawn from one seed, in one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


class Dice:
    """A seeded source of choices; equal seeds give equal apps on every machine."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.between(0, len(choices) - 1)]

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """Up to `most` distinct choices (by place) in random order; possibly none."""
        count = self.between(0, min(most, len(choices)))
        return [choices[int(i)] for i in self.rng.permutation(len(choices))[:count]]

    def places(self, rows: int, distinct: int) -> npt.NDArray[np.int64]:
        """Which of `distinct` values each row has: uniform, skewed, or in runs as flows come."""
        match self.between(0, 2):
            case 0:
                return self.rng.integers(0, distinct, rows)
            case 1:
                return np.asarray(np.minimum(self.rng.zipf(1.4, rows), distinct) - 1, np.int64)
            case _:
                starts = self.rng.random(rows) < 0.2
                order = self.rng.permutation(distinct).astype(np.int64)
                return np.asarray(order[np.cumsum(starts) % distinct], np.int64)
