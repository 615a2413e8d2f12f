"""Random ranges of live batches, as a scheduler may log them: steps, odd ends that are exact, records dropped."""

from __future__ import annotations

import random
from collections.abc import Sequence

DROP = 63
Range = tuple[int, int]


def random_ranges(dice: random.Random, batches: Sequence[int], most: int = 5, drop: float = 0.0) -> list[list[Range]]:
    """Of every batch; none where all its records are read. `most` is the greatest k, `drop` how likely nothing is."""
    found: list[list[Range]] = []
    start = 0
    for rows in batches:
        stop = start + rows
        found.append([] if dice.random() < 0.25 else _of_batch(dice, start, stop, most, drop))
        start = stop
    return found


def _of_batch(dice: random.Random, start: int, stop: int, most: int, drop: float) -> list[Range]:
    ranges: list[Range] = []
    while start < stop:
        end = min(stop, start + dice.randint(1, max(1, stop - start)))
        k = DROP if dice.random() < drop else dice.randint(0, most)
        first, last = (start, end) if k in (0, DROP) else ((start + (1 << k) - 1) >> k << k, end >> k << k)
        if first >= last:
            ranges.append((end, 0))
        else:
            ranges += [(first, 0)] * (first > start) + [(last, k)] + [(end, 0)] * (end > last)
        start = end
    return ranges
