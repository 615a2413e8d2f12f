"""Building blocks of synthetic streams: random numbers by block, Zipf ranks, clocks, plain attributes.

A stream is a sequence of blocks of `BLOCK` records. Block k depends on kind, options and k alone, so that reading some
records makes only their own blocks. `sources.generate.flows` makes network records of this, and
`sources.generate.source` turns both into a `Source`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 65536

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Columns = dict[str, NDArray[Any]]


def block_random(seed: int, kind: int, block: int) -> np.random.Generator:
    """The random numbers of one block, independent of all others."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(kind, block))))


def mix(values: NDArray[Any], salt: int) -> Words:
    """A fixed pseudo-random 64-bit word per value (the finaliser of splitmix64)."""
    words = values.astype(np.uint64) + np.uint64((salt * 0x9E3779B97F4A7C15) % 2**64)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def unit(words: Words) -> Floats:
    """Words as numbers in [0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=16)
def _zipf_cumulated(count: int, exponent: float) -> Floats:
    cumulated = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    return np.asarray(cumulated / cumulated[-1], dtype=np.float64)


def zipf_ranks(uniform: Floats, count: int, exponent: float) -> NDArray[np.int64]:
    """Ranks 0..count-1 with P(rank i) proportional to (i + 1)^-exponent, by inversion."""
    return np.minimum(np.searchsorted(_zipf_cumulated(count, exponent), uniform, side="right"), count - 1)


@dataclass(frozen=True)
class RecordClock:
    """Stream time of a position; with `burst_seconds` the rate goes up `burst_factor` times now and then.

    Each cycle of `cycle` seconds has the same number of records and one burst at a random place, lasting half
    to the whole of `burst_seconds`, at half to the whole of `burst_factor` times the rate of the rest.
    """

    start: int  # microseconds
    rate: float  # records per second, on average
    seed: int = 0
    burst_seconds: float = 0.0
    burst_factor: float = 10.0
    cycle: float = 30.0

    def times(self, rng: np.random.Generator, block: int, rows: int = BLOCK) -> NDArray[np.int64]:
        """Non-decreasing microseconds of a block's rows, also from block to block: a Poisson-like arrival."""
        gaps = -np.log1p(-rng.random(rows))
        position = np.cumsum(gaps)
        position *= rows / (position[-1] - np.log1p(-rng.random()))
        np.minimum(position, rows, out=position)
        position += float(block) * rows
        seconds = position / self.rate if self.burst_seconds <= 0 else self._modulated(position)
        return self.start + np.floor(seconds * 1e6).astype(np.int64)

    def _modulated(self, position: Floats) -> Floats:
        # Every term grows with the position even after rounding, so the sum does: no step back anywhere.
        per_cycle = self.rate * self.cycle
        number = np.floor(position / per_cycle)
        at = np.maximum(position - number * per_cycle, 0.0)
        chance = [unit(mix(number, self.seed * 4 + i)) for i in range(3)]
        lasting = self.burst_seconds * (0.5 + 0.5 * chance[0])
        factor = self.burst_factor * (0.5 + 0.5 * chance[1])
        begin = (self.cycle - lasting) * chance[2]
        calm = per_cycle / (self.cycle - lasting + factor * lasting)
        burst_at, burst_rows = calm * begin, calm * factor * lasting
        before = np.minimum(at / calm, begin)
        during = np.minimum(np.maximum(at - burst_at, 0.0) / (calm * factor), lasting)
        after = np.maximum(at - burst_at - burst_rows, 0.0) / calm
        return number * self.cycle + np.minimum(before + during + after, self.cycle)


@dataclass(frozen=True)
class Attributes:
    """The relation R(a, b, c, …) of the papers: `exponent` 0 is uniform; `groups` limits the distinct records.

    Without `groups` the attributes are independent. With it there are `groups` fixed records, and these are uniform
    or Zipf distributed, not their attributes.
    """

    cardinality: tuple[int, ...]
    exponent: float = 0.0
    groups: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple("abcdefghijklmnopqrstuvwxyz"[: len(self.cardinality)])

    def columns(self, rng: np.random.Generator, seed: int) -> Columns:
        """One block's attribute values and a `value` to sum."""
        made: Columns = {}
        group = mix(self._ranks(rng, self.groups), seed) if self.groups else None
        for number, (name, count) in enumerate(zip(self.names, self.cardinality, strict=True)):
            if group is None:
                made[name] = self._ranks(rng, count).astype(np.int32)
            else:
                made[name] = (mix(group, number) % np.uint64(count)).astype(np.int32)
        made["value"] = rng.integers(1, 1501, BLOCK, dtype=np.int32)
        return made

    def _ranks(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        if self.exponent == 0:
            return rng.integers(0, count, BLOCK)
        return zipf_ranks(rng.random(BLOCK), count, self.exponent)
