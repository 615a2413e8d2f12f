"""Tables at work for `eviction`: what they evict of records drawn by Zipf laws and of a log, beside the models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.kit.report import ExperimentSettings
from experiments.models.curves import Lemma
from experiments.tree.local import lags_of, recurring
from experiments.tree.plans import che
from experiments.tree.streams import LETTERS, RecordEpoch
from experiments.tree.tables import DirectTable, EntryTable, LruTable
from penstock.sharing.model.eviction import Che, Curve
from penstock.sharing.model.popularity import estimated, exponent, of_counts, zipf
from penstock.sources.generate.synthetic import zipf_ranks

Ints = NDArray[np.int64]

EXPONENTS = (0.48, 0.67, 0.85, 1.0)  # the paper's, and the other case of Lemma 6.1
SHARES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8)  # b/g
KEPT_SHARES = (0.03, 0.1, 0.3)  # the same for a log
TIMES = (1, 2, 4, 8, 16)  # n/g
PARTS = (0.25, 0.5, 0.75, 1.0)  # of the locality of a log
CHAINS = (10_000, 20_000, 50_000, 100_000)


@dataclass(frozen=True)
class Rates:
    """Shares of the records that are evicted once a table of b entries is full."""

    alpha: float
    share: float
    lemma: float
    exact: float
    lfu: float
    lru: float
    che: float


@dataclass(frozen=True)
class Outs:
    """What a table passes on in an epoch of n records, its last entries included: counted (LRU, direct-mapped), by Che,
    and by Eq. 1, b + f·n and never below g, with the f that was counted."""

    where: str
    share: float
    times: float
    counted: int
    direct: int
    che: float
    printed: float


@dataclass(frozen=True)
class Chains:
    """Of full tables: the average chain and, run by run, the longest; the average with the engine's two buckets."""

    capacity: int
    average: float
    worst: tuple[int, ...]
    engine: float


def drawn(alpha: float, groups: int, tuples: int, seed: int) -> Ints:
    """Ranks by a Zipf law, the most frequent group 0."""
    return zipf_ranks(np.random.default_rng(seed).random(tuples), groups, alpha)


def rates_of(
    alpha: float, groups: int, settings: ExperimentSettings, lags: NDArray[np.float64] | None = None
) -> list[Rates]:
    """Rates of a full table: the second half of the records, for in the first it fills. With `lags`, records come again
    as often after so many others (`local`), and there are as many fresh draws as without."""
    fresh = 1.0 if lags is None else max(0.05, 1.0 - float(lags.sum()))
    codes = drawn(alpha, groups, int(max(TIMES) * groups / fresh), settings.seed)
    if lags is not None:
        codes = recurring(codes, lags, settings.seed)
    half = len(codes) // 2
    printed, exact = Lemma(groups, alpha), Lemma(groups, alpha, exact=True)
    curve, far = Che(zipf(groups, alpha), float(100 * groups)), float(100 * groups)
    found = []
    for share in SHARES:
        b = int(share * groups)
        keeping = LruTable(b)
        keeping.take(codes[:half])
        lru = len(keeping.take(codes[half:])) / (len(codes) - half)
        lfu = float((codes[half:] >= b).mean())
        f = curve.response(b, far)[1]
        found.append(Rates(alpha, share, float(printed.rates(b)), float(exact.rates(b)), lfu, lru, f))
    return found


@dataclass(frozen=True)
class LocalRates:
    """Rates of records with a part of the locality of a log; `fresh`: how many of them are fresh draws."""

    alpha: float
    part: float
    fresh: float
    rates: tuple[Rates, ...]


def local_rates(
    epoch: RecordEpoch, named: Mapping[str, str], groups: int, settings: ExperimentSettings
) -> list[LocalRates]:
    """For each exponent the locality of the relation of which the paper tells it; of the source where it tells none."""
    source, pair, flow = named.values()
    relations = {0.85: source, 0.67: pair, 0.48: flow, 1.0: source}
    found = []
    for alpha in EXPONENTS:
        lags = lags_of(epoch.grouping(relations[alpha]).number.astype(np.int64))
        for part in PARTS:
            rates = rates_of(alpha, groups, settings, part * lags)
            found.append(LocalRates(alpha, part, 1.0 - part * float(lags.sum()), tuple(rates)))
    return found


def passed(codes: Ints, kind: EntryTable) -> int:
    """Evictions, and what is left at the end."""
    return len(kind.take(codes)) + len(kind.drain())


def outs_of(alpha: float, groups: int, settings: ExperimentSettings) -> list[Outs]:
    """Epochs of different length, from an empty table."""
    found = []
    for times in TIMES:
        codes = drawn(alpha, groups, times * groups, settings.seed + times)
        curve = Che(zipf(groups, alpha), float(len(codes)))
        found += [_out(codes, f"α = {alpha:g}", share, times, int(share * groups), curve) for share in SHARES]
    return found


def _out(codes: Ints, where: str, share: float, times: float, b: int, curve: Curve) -> Outs:
    seen, n = len(np.unique(codes)), len(codes)
    counted = passed(codes, LruTable(b))
    steady = LruTable(b)
    steady.take(codes)
    f = len(steady.take(codes)) / n  # the epoch once more, on a full table
    printed = max(float(seen), min(b, seen) + f * n)
    return Outs(where, share, times, counted, passed(codes, DirectTable(b)), curve.out(b, n), printed)


def relations_of(epoch: RecordEpoch) -> list[str]:
    """Single attributes with many groups, two of them, the 4-tuple, and all."""
    single = sorted(LETTERS, key=epoch.groups, reverse=True)[:4]
    return [*sorted(single), "".join(sorted(single[:2])), "ABCD", LETTERS]


@dataclass(frozen=True)
class Logged:
    """A relation of a log in a table below the stream: rates of a full table over LRU's, and what an epoch passes on;
    `planned` is by Che with what comes close together counted once, as the engine plans."""

    lemma: float
    lru_to_lfu: float
    outs: Outs
    planned: float


def logged(epoch: RecordEpoch, letters: str) -> list[Logged]:
    number, counts = epoch.grouping(letters).number.astype(np.int64), np.sort(epoch.counts(letters))[::-1]
    groups, rows = float(len(counts)), float(epoch.rows)
    counted, planned = Che(estimated(counts, rows, groups), rows), che(epoch, letters, "")
    printed = Lemma(groups, min(1.0, exponent(counts)))
    found = []
    for share in KEPT_SHARES:
        b = max(1, int(share * groups))
        keeping = LruTable(b)
        keeping.take(number)
        evicted = max(1, len(keeping.take(number)))
        found.append(
            Logged(
                float(printed.rates(b)) * rows / evicted,
                evicted / max(1, int(counts[b:].sum())),
                _out(number, letters, share, rows / groups, b, counted),
                planned.out(b, rows),
            )
        )
    return found


@dataclass(frozen=True)
class Child:
    """A table below another one: its rate, and what the popularity in the stream or in its own input says."""

    counted: float
    stream: float
    own: float


def below_a_table(settings: ExperimentSettings) -> Child:
    """Pairs of a skewed and an even attribute, then the skewed one alone."""
    tuples = min(settings.rows, 300_000)
    first = drawn(1.0, 400, tuples, settings.seed)
    pairs = first * 1000 + np.random.default_rng(settings.seed).integers(0, 100, tuples)
    fed = LruTable(10_000).take(pairs) // 1000
    counted = len(LruTable(40).take(fed)) / len(fed)

    def rate(codes: Ints) -> float:
        counts = np.bincount(codes)
        return Che(of_counts(counts[counts > 0]), float(len(codes))).response(40, float(len(codes)))[1]

    return Child(counted, rate(first), rate(fed))


def chains_of(capacity: int, runs: int, seed: int) -> Chains:
    """A full table of random keys with a bucket for each entry, as in the paper, and with the engine's two."""
    rng = np.random.default_rng(seed)
    averages: list[float] = []
    engine: list[float] = []
    worst: list[int] = []
    for _ in range(runs):
        keys = rng.integers(0, 1 << 40, capacity)
        chained, ours = LruTable(capacity, capacity), LruTable(capacity)
        for each, into in ((chained, averages), (ours, engine)):
            each.take(keys)
            lengths = each.chains()
            into.append(float(lengths[lengths > 0].mean()))
        worst.append(int(chained.chains().max()))
    return Chains(capacity, float(np.mean(averages)), tuple(worst), float(np.mean(engine)))
