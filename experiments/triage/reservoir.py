"""Algorithm L: a sample of fixed size of a stream, in which records that are skipped cost nothing (Li, 1994)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def reservoir(rows: int, size: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Which of so many records stand in the reservoir at the end.

    The greatest of `size` uniform numbers is U^(1/size), so w is where the greatest of the reservoir's stands; the next
    record whose number is below it comes after a geometric number of others.
    """
    held = np.arange(min(rows, size), dtype=np.int64)
    if rows <= size:
        return held
    row, w = size - 1, 1.0
    while True:
        w *= math.exp(math.log(1.0 - rng.random()) / size)
        row += math.floor(math.log(1.0 - rng.random()) / math.log1p(-w)) + 1
        if row >= rows:
            return held
        held[int(rng.integers(size))] = row
