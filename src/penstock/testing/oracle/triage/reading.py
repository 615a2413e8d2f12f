"""Which records of a live stream a run read, from the ranges in its offsets.

| k of a range | read of it | each stands for |
| --- | --- | --- |
| 0 | all records | 1 |
| 1 .. 12 | of records [h·2^k, (h + 1)·2^k) the one at h·2^k + pick(h) | 2^k |
| 63 | none | |

pick(h) are the lowest k bits of mix((mix(k) xor key) + h), mix the finaliser of SplitMix64 with its increment: plain
numbers here, one record after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from penstock.testing.oracle.columns import Flags, Numbers

GREATEST, NOTHING = 12, 63
BITS = (1 << 64) - 1
Range = tuple[int, int]  # up to which record, and k


@dataclass(frozen=True)
class Reading:
    """Of every record of a stream: k of its range, and whether it was read."""

    steps: npt.NDArray[np.int8]
    read: Flags

    @property
    def weights(self) -> Numbers:
        """How many records each stands for; none, where it was not read."""
        return np.where(self.read, np.int64(1) << np.minimum(self.steps, GREATEST).astype(np.int64), 0)

    @property
    def picked(self) -> Flags:
        """Records that stand for others, too."""
        return np.asarray(self.read & (self.steps > 0))

    @property
    def dropped(self) -> Flags:
        return np.asarray(self.steps == NOTHING)


def read_records(rows: int, ranges: Iterable[Range], key: int) -> Reading:
    """`ranges` are of the whole run, from its first record on; what comes behind them is exact."""
    steps, read = np.zeros(rows, np.int8), np.ones(rows, np.bool_)
    start = 0
    for stop, k in ranges:
        if not start <= stop <= rows:
            raise ValueError(f"a range ends at {stop}: the one before at {start}, the stream at {rows}")
        steps[start:stop] = k
        if k == NOTHING:
            read[start:stop] = False
        elif k:
            read[start:stop] = False
            read[picks(start, stop, k, key)] = True
        start = stop
    return Reading(steps, read)


def picks(start: int, stop: int, k: int, key: int) -> list[int]:
    """The records that are read of [start, stop), with a k from 1 to 12."""
    size = 2**k
    if not 1 <= k <= GREATEST or start % size or stop % size:
        raise ValueError(f"no range of steps of 2^{k}: [{start}, {stop})")
    own = mix(k) ^ key
    return [block * size + mix((own + block) & BITS) % size for block in range(start // size, stop // size)]


def whole_run(batches: Sequence[int], logged: Sequence[Sequence[Range]]) -> list[Range]:
    """Ranges of the whole run, from those of every batch: a batch without any has all its records read."""
    found: list[Range] = []
    end = 0
    for rows, ranges in zip(batches, logged, strict=True):
        end += rows
        found += ranges or [(end, 0)]
        if found[-1][0] != end:
            raise ValueError(f"the ranges of a batch that ends at {end} go to {found[-1][0]}")
    return found


def key_of(seed: str, stream: str) -> int:
    """The key of a stream's picks in the checkpoint with this seed."""
    digest = blake2b((seed + ":" + stream).encode("utf-8"), digest_size=8).digest()
    return sum(byte << 8 * place for place, byte in enumerate(digest))


def mix(number: int) -> int:
    """One step of SplitMix64 from this state."""
    word = (number + 0x9E3779B97F4A7C15) & BITS
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & BITS
    return word ^ (word >> 31)
