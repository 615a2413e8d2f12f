"""Peaks of 2, 5 and 10 times what can be read: how many windows keep the promise, and what it costs in accuracy."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.latency import queries
from benchmarks.latency.trial import BURST, CALM, FIRST, Outcome, Seen, Trial, run_trial
from penstock.app.demos import burst, capacity
from penstock.app.demos.burst import Profile
from penstock.app.demos.capacity import Capacity

Progress = Callable[[str], None]

PEAKS = (2.0, 5.0, 10.0)
PROMISE, LOOSER = 2.0, 5.0
CALM_LOAD = 0.4  # of what can be read
BEFORE, AFTER = 24.0, 26.0  # seconds
SEED = 7


@dataclass(frozen=True)
class Bench:
    """What all trials have in common."""

    app: Path
    capacity: Capacity
    seconds: float  # of a burst
    work: Path

    def profile(self, peak: float) -> Profile:
        rate = self.capacity.rate
        return burst.burst_profile(CALM_LOAD * rate, peak * rate, BEFORE, self.seconds, AFTER)

    def trace(self, peak: float) -> Path:
        profile = self.profile(peak)
        path = self.work / f"burst-{burst.records_of(profile)}-{self.seconds:g}.arrow"
        if not path.exists():
            burst.write_burst(path, profile, SEED)
        return path

    def run(self, trial: Trial) -> Outcome:
        place = self.work / "trial"
        return run_trial(trial, self.app, self.trace(trial.peak), self.profile(trial.peak), self.capacity, place)


def arranged(work: Path, wanted: float, seconds: float, tell: Progress) -> Bench:
    """The app, and a capacity that is about `wanted` records a second."""
    work.mkdir(parents=True, exist_ok=True)
    app = work / "latency.sql"
    app.write_text(queries.app_text(), encoding="utf-8")
    trial = work / f"trial-{wanted:.0f}.arrow"
    if not trial.exists():
        burst.write_burst(trial, burst.burst_profile(wanted, wanted, 8, 0, 0), SEED)
    tell("capacity: a short run")
    shutil.rmtree(work / "capacity", ignore_errors=True)
    found = capacity.measured(app, trial, wanted, work / "capacity", ["--set", f"promise={PROMISE:g}"])
    tell(f"capacity: {found.rate:,.0f} records a second with a drag of {found.drag:,.0f} ns")
    return Bench(app, found, seconds, work)


def trials(peaks: Sequence[float]) -> list[Trial]:
    looser = [Trial(_name(peaks[len(peaks) // 2], LOOSER), peaks[len(peaks) // 2], LOOSER)]
    return [*(Trial(_name(peak, PROMISE), peak, PROMISE) for peak in peaks), *looser]


def measured(bench: Bench, peaks: Sequence[float], repeat: int, tell: Progress) -> Iterator[dict[str, Any]]:
    """A line for each peak, over all its runs; runs take turns."""
    chosen = trials(peaks)
    found: dict[str, list[Outcome]] = {trial.name: [] for trial in chosen}
    for turn in range(repeat):
        for trial in chosen:
            tell(f"{trial.name}: run {turn + 1} of {repeat}")
            outcome = bench.run(trial)
            found[trial.name].append(outcome)
            tell(f"{trial.name}: {told(outcome)}")
    for outcomes in found.values():
        yield line(outcomes)


def told(outcome: Outcome) -> str:
    """A run in a few words."""
    delays = ", ".join(f"{max(one.delays):.2f}" for one in outcome.windows)
    unread = ", ".join(f"{100 * one.unread / max(1, one.read + one.unread):.0f}" for one in outcome.windows)
    return f"delays {delays} s; unread {unread} %"


def line(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    trial = outcomes[0].trial
    batch = float(np.median([outcome.batch for outcome in outcomes]))
    windows = {kind: [w for outcome in outcomes for w in outcome.of(kind)] for kind in (FIRST, CALM, BURST)}
    return {
        "engine": "penstock",
        "version": "",
        "work": trial.name,
        "part": "peaks",
        "peak": trial.peak,
        "promise": trial.promise,
        "runs": len(outcomes),
        "seconds": percentile([w for of in windows.values() for w in of], 99),
        "ratio_to_penstock": None,
        "same_answer": all(window.total == 0 and window.groups == 0 for window in windows[CALM]),
        "batch_seconds": round(batch, 3),
        **{kind: summed(of, trial.promise, batch) for kind, of in windows.items() if of},
        "note": "",
    }


def summed(windows: Sequence[Seen], promise: float, batch: float) -> dict[str, Any]:
    """Counts of windows of all queries, delays, and errors."""
    late = np.array([delay for window in windows for delay in window.delays])
    stalls = np.array([window.stall > promise / 4 for window in windows for _ in window.delays])
    read, unread = (sum(getattr(window, part) for window in windows) for part in ("read", "unread"))
    promised = [window.promised for window in windows if window.promised is not None]
    return {
        "windows": len(late),
        "within": int((late <= promise).sum()),
        "a_batch_later": int(((late > promise) & (late <= promise + batch)).sum()),
        "later": int((late > promise + batch).sum()),
        "while_stalled": int(stalls.sum()),
        "late_without_stall": int(((late > promise) & ~stalls).sum()),
        "median": percentile(windows, 50),
        "p99": percentile(windows, 99),
        "greatest": round(float(late.max()), 3),
        "read": read,
        "unread": unread,
        "total_error": round(float(np.mean([window.total for window in windows])), 6),
        "greatest_total_error": round(float(max(window.total for window in windows)), 6),
        "promised_error": round(float(np.mean(promised)), 6) if promised else None,
        "rmse": round(float(np.sqrt(np.mean([window.groups**2 for window in windows]))), 3),
    }


def percentile(windows: Sequence[Seen], percent: float) -> float:
    late = [delay for window in windows for delay in window.delays]
    return round(float(np.percentile(late, percent, method="inverted_cdf")), 3)


def _name(peak: float, promise: float) -> str:
    return f"{peak:g} times what can be read, promised in {promise:g} s"
