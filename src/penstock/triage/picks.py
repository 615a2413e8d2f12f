"""Picks: of every 2^k neighbouring records of a stream, the one that is read.

A range of records of a live stream has a *step* 2^k. With k = 0 all its records are read. With k > 0 the records
[h·2^k, (h + 1)·2^k) are a *block*, and one of them is read:

    pick(h) = h·2^k + mix(mix(k) xor key, h) mod 2^k

`key` is of the stream and of the checkpoint's seed, so a replay reads the same records, whatever its tasks. `mix` is
the finaliser of SplitMix64. Ranges with k > 0 begin and end at multiples of 2^k: each pick stands for 2^k records, and
the weights of a range add up to its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

Array = np.ndarray
MOST = 12  # the greatest k
DROP = 63  # the k of a range of which nothing is read
GOLDEN = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Picks:
    """Which records are read of a range whose step is 2^k, with k > 0."""

    k: int
    key: int

    @property
    def step(self) -> int:
        return 1 << self.k

    def unread(self, start: int, stop: int) -> int:
        """How many of the records [start, stop) are left unread."""
        return stop - start - ((stop >> self.k) - (start >> self.k))

    def rows(self, start: int, stop: int) -> Array:
        """The picks among records [start, stop), ascending; both are multiples of the step."""
        blocks = np.arange(start >> self.k, stop >> self.k, dtype=np.uint64)
        offsets = _mixed(blocks + np.uint64((_mix(self.k) ^ self.key) & WORD)) & np.uint64(self.step - 1)
        return ((blocks << np.uint64(self.k)) + offsets).astype(np.int64)


def key_of(seed: str, stream: str) -> int:
    """What tells the picks of one stream, in one checkpoint, from all others."""
    return int.from_bytes(blake2b(f"{seed}:{stream}".encode(), digest_size=8).digest(), "little")


def exact_ends(start: int, stop: int, k: int) -> Iterator[tuple[int, int]]:
    """Records up to `stop` as ranges (stop, k): what is odd at either end of [start, stop) is exact.

    >>> list(exact_ends(3, 18, 2))
    [(4, 0), (16, 2), (18, 0)]
    """
    step = 1 << k
    first, last = -(-start // step) * step, stop // step * step
    if k == 0 or first >= last:
        yield stop, 0
        return
    if first > start:
        yield first, 0
    yield last, k
    if stop > last:
        yield stop, 0


def joined(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same ranges (stop, k), neighbours of one k as one.

    >>> joined([(4, 0), (16, 2), (32, 2)])
    ((4, 0), (32, 2))
    """
    return tuple(one for one, after in zip(ranges, [*ranges[1:], (0, -1)], strict=False) if one[1] != after[1])


def _mix(number: int) -> int:
    mixed = (number + GOLDEN) & WORD
    mixed = (mixed ^ mixed >> 30) * FIRST & WORD
    mixed = (mixed ^ mixed >> 27) * SECOND & WORD
    return mixed ^ mixed >> 31


def _mixed(numbers: Array) -> Array:
    """The same of an array; it may be overwritten."""
    numbers += np.uint64(GOLDEN)
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(FIRST)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(SECOND)
    numbers ^= numbers >> np.uint64(31)
    return numbers
