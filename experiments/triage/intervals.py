"""How often x ± 1.96 errors holds the truth: of counts, and of sums by the number of picks and the skew of the values.

Groups stand by the picks that are expected of them, their records / 2^k. (By the picks that were found, those with too
many would be among them, and those with too few would not.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from experiments.triage.samples import Estimates, Floats, Window, averages, read, totals

Flags = npt.NDArray[np.bool_]
NORMAL = 1.959964  # of the errors, 95 % of a normal distribution
K, BLOCKS = 4, 4_096  # of the windows: 65,536 records, 4,096 picks
PICKS = (5, 10, 20, 50, 100, 200)
SIGMAS = (0.0, 0.5, 1.0, 1.5, 2.0)  # of lognormal values; 0: all values are equal
FLOWS = Path(__file__).parents[3] / "shared" / "data" / "flows" / "zeek_conn_2022-03.parquet"


@dataclass(frozen=True)
class Cell:
    """Groups with so many expected picks: how often their intervals held the truth, and trials times groups."""

    low: float
    high: float
    held: float
    intervals: int


def holds(found: Estimates, truth: Floats) -> Flags:
    """An interval of width 0 holds a truth that it is, but for rounding."""
    return np.asarray(np.abs(found.x - truth) <= NORMAL * found.error + 1e-9 * np.abs(truth))


def held_by_picks(hits: Floats, trials: int, expected: Floats, edges: Sequence[float]) -> list[Cell]:
    """`hits` are by group. Groups are put together between two edges."""
    cells = []
    for low, high in pairwise(edges):
        inside = (expected >= low) & (expected < high)
        number = int(inside.sum()) * trials
        cells.append(Cell(low, high, float(hits[inside].sum()) / number if number else float("nan"), number))
    return cells


def zipf_window(rng: np.random.Generator, groups: int = 2_000) -> Window:
    """Zipf 1; values lognormal, σ = 1."""
    rows = BLOCKS << K
    weights = 1.0 / np.arange(1, groups + 1)
    found = rng.choice(groups, rows, p=weights / weights.sum()).astype(np.int64)
    return Window(found, rng.lognormal(0.0, 1.0, rows), groups)


def count_hits(window: Window, trials: int, rng: np.random.Generator, shuffle: bool, k: int = K) -> Floats:
    """How many trials held the truth, by group: each has a key of its own and, shuffled, an order of its own."""
    ones, truth = window.of_ones(), window.counts()
    hits = np.zeros(window.number)
    for _ in range(trials):
        placed = ones.shuffled(rng) if shuffle else ones
        hits += holds(totals(read(placed, [(window.rows, k)], int(rng.integers(1 << 63)))), truth)
    return hits


# -- sums


def skewed_window(rng: np.random.Generator) -> Window:
    """A group for each skew and number of picks, among records of no such group (the last one)."""
    groups, values = [], []
    for i, (sigma, picks) in enumerate((sigma, picks) for sigma in SIGMAS for picks in PICKS):
        groups.append(np.full(picks << K, i))
        values.append(np.exp(sigma * rng.standard_normal(picks << K)))
    rest = (BLOCKS << K) - sum(len(one) for one in groups)
    number = len(SIGMAS) * len(PICKS)
    return Window(
        np.concatenate([*groups, np.full(rest, number)]), np.concatenate([*values, np.ones(rest)]), number + 1
    )


def skewed_hits(trials: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """How often intervals of sums, and of averages, held the truth: by σ (rows) and expected picks (columns).

    Values are drawn anew in every trial: it is the distribution that is asked about.
    """
    number = len(SIGMAS) * len(PICKS)
    hits = np.zeros((2, number))
    for _ in range(trials):
        window = skewed_window(rng).shuffled(rng)
        steps = read(window, [(window.rows, K)], int(rng.integers(1 << 63)))
        truth = window.totals()
        with np.errstate(invalid="ignore"):
            hits[0] += holds(totals(steps), truth)[:number]
            hits[1] += holds(averages(steps), truth / window.counts())[:number]
    sums, means = (one.reshape(len(SIGMAS), len(PICKS)) / trials for one in hits)
    return sums, means


# -- real flows


def flow_windows(column: str, number: int, path: Path = FLOWS) -> list[Window]:
    """Windows of the log in the order of the file, by a column; the values are bytes of the originator (NULL: 0)."""
    rows = BLOCKS << K
    table = pq.read_table(path, columns=list(dict.fromkeys((column, "orig_ip_bytes"))))
    starts = np.linspace(0, table.num_rows - rows, number).astype(int).tolist()
    windows = []
    for start in starts:
        part = table.slice(start, rows)
        encoded = part.column(column).combine_chunks().dictionary_encode(null_encoding="encode")
        values = part.column("orig_ip_bytes").combine_chunks().fill_null(0)
        codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
        windows.append(Window(codes, np.asarray(values.to_numpy(), np.float64), len(encoded.dictionary)))
    return windows


def sum_hits(window: Window, trials: int, rng: np.random.Generator, k: int = K) -> Floats:
    """The same of sums, in the order that the records have."""
    truth = window.totals()
    hits = np.zeros(window.number)
    for _ in range(trials):
        hits += holds(totals(read(window, [(window.rows, k)], int(rng.integers(1 << 63)))), truth)
    return hits
