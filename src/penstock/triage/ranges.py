"""Steps as ranges (stop, k) of records: a step between two powers of two is a mixture of both.

Mixing uses the time that rounding up would leave: at 10 times the capacity the standard error of a count is a fifth
smaller. The coarser part stands first, so what is wrong about costs shows while it can be made up for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import frexp

from penstock.triage.picks import DROP, exact_ends, joined
from penstock.triage.plan import Range

FEW = 4  # blocks, below which nothing is mixed


def ranged(start: int, taken: Sequence[tuple[int, float]], drop: bool) -> tuple[Range, ...]:
    """Records from `start` on, taken up to a stop at a step each."""
    levels: list[Range] = []
    for stop, step in taken:
        levels += _dropped(start, stop, step) if drop else _mixed(start, stop, step)
        start = max(start, stop)
    return joined(levels)


def aligned(start: int, stop: int, step: float) -> int:
    """Where a range ends that may as well end a little earlier: no record of it is odd."""
    return max(start, stop >> _coarser(step) << _coarser(step)) if step > 1 else stop


def reads(start: int, ranges: Sequence[Range]) -> int:
    """How many records are read."""
    count = 0
    for stop, k in ranges:
        count += 0 if k == DROP else stop - start >> k
        start = stop
    return count


def _dropped(start: int, stop: int, step: float) -> Iterator[Range]:
    kept = start + round((stop - start) / step)
    if kept > start:
        yield kept, 0
    if stop > kept:
        yield stop, DROP


def _mixed(start: int, stop: int, step: float) -> Iterator[Range]:
    k = _coarser(step)
    size = 1 << k
    if step < size and stop - start >= FEW * size:
        finer = size / step - 1  # the share of records that get half the step
        middle = stop - round(finer * (stop - start)) >> k << k
        if middle > start:
            yield from _fitted(start, middle, k)
            start = middle
        k -= 1
    if stop > start:
        yield from _fitted(start, stop, k)


def _fitted(start: int, stop: int, k: int) -> list[Range]:
    """With a finer step where fewer records are read so, since fewer are odd."""
    choices = (list(exact_ends(start, stop, one)) for one in range(k + 1))
    return min(choices, key=lambda found: reads(start, found))


def _coarser(step: float) -> int:
    """The least k with 2^k ≥ step."""
    fraction, exponent = frexp(step)
    return exponent - 1 if fraction == 0.5 else exponent
