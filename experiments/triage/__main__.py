"""`python -m experiments.triage [--quick]`: the tables of `docs/design/20261118_triage_estimates.md`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console

from experiments.command import shown_table
from experiments.kit.report import Numbers, table
from experiments.triage.intervals import (
    FLOWS,
    PICKS,
    SIGMAS,
    Cell,
    K,
    count_hits,
    flow_windows,
    held_by_picks,
    skewed_hits,
    sum_hits,
    zipf_window,
)
from experiments.triage.overload import OVERLOADS, TRIALS, errors, steady, turning
from experiments.triage.samples import Floats, Window

SEED = 20261118
INTERVALS = 1_000
EDGES = (1, 2, 5, 10, 20, 50, 100, 1_000, 100_000)
COLUMNS = ("conn_state", "resp_p", "orig_h", "resp_h")
WINDOWS = 8


def overload_tables(trials: int) -> Iterator[Numbers]:
    for name, draw in (("every record drawn by itself", steady), ("other groups in the last half", turning)):
        found = errors(draw, SEED, trials)
        rows = [(one.way, *(f"{rmse:.1f}" for rmse in one.rmse)) for one in found]
        columns = ("RMSE of counts", *(f"{overload} ×" for overload in OVERLOADS))
        yield table(f"400,000 records, Zipf 1, 5,000 groups; {name}", columns, rows)


def interval_tables(trials: int) -> Iterator[Numbers]:
    rng = np.random.default_rng(SEED)
    window = zipf_window(rng)
    cells = held_by_picks(count_hits(window, trials, rng, shuffle=True), trials, window.counts() / (1 << K), EDGES)
    yield _cells(f"counts, Zipf 1, shuffled, {trials} trials", {"held": cells})
    sums, means = skewed_hits(trials, rng)
    for name, found in (("sums", sums), ("averages", means)):
        rows = [(f"σ = {sigma}", *(f"{one:.3f}" for one in row)) for sigma, row in zip(SIGMAS, found, strict=True)]
        columns = ("expected picks", *(str(picks) for picks in PICKS))
        yield table(f"{name} of lognormal values, shuffled, {trials} trials", columns, rows)


def flow_tables(trials: int) -> Iterator[Numbers]:
    rng = np.random.default_rng(SEED)
    hits_by: dict[str, Callable[[Window], Floats]] = {
        "counts": lambda window: count_hits(window, trials, rng, shuffle=False),
        "sums of bytes": lambda window: sum_hits(window, trials, rng),
    }
    for what, hits_of in hits_by.items():
        by_column = {}
        for column in COLUMNS:
            windows = flow_windows(column, WINDOWS)
            hits = np.concatenate([hits_of(window) for window in windows])
            expected = np.concatenate([window.counts() / (1 << K) for window in windows])
            by_column[column] = held_by_picks(hits, trials, expected, EDGES)
        yield _cells(f"{what} of real flows in the order of the file, {trials} trials of {WINDOWS} windows", by_column)


def _cells(title: str, found: dict[str, list[Cell]]) -> Numbers:
    columns = ("expected picks", *(f"{c.low:g}–{c.high:g}" for c in next(iter(found.values()))))
    rows = [(name, *("" if c.intervals == 0 else f"{c.held:.3f}" for c in cells)) for name, cells in found.items()]
    return table(title, columns, rows)


def main(quick: bool) -> None:
    console = Console(width=120)
    start = time.monotonic()
    few = 10 if quick else 1
    tables = [*overload_tables(max(2, TRIALS // few)), *interval_tables(INTERVALS // few)]
    tables += flow_tables(INTERVALS // 5 // few) if FLOWS.exists() else []
    for one in tables:
        console.print(shown_table(one))
    console.print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
