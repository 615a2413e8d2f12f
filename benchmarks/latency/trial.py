"""One run through one burst: how late the results of its windows came, and how far they are from the truth."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.latency import queries
from benchmarks.latency.stalls import Stall, stalled, watching
from penstock.app.demos import burst
from penstock.app.demos.burst import SECOND, START, Profile
from penstock.app.demos.capacity import Capacity, run_app
from penstock.app.demos.windows import read_results
from penstock.app.state_view import state_of
from penstock.state.rings import CAPACITY

Array = np.ndarray
FIRST, CALM, BURST = "first", "calm", "burst"
TRIAGE = "triage"


@dataclass(frozen=True)
class Trial:
    """A peak in multiples of what can be read, a promise in seconds, a way to deal with the excess."""

    name: str
    peak: float
    promise: float
    mode: str = TRIAGE
    batch_rows: int | None = None


@dataclass(frozen=True)
class Seen:
    """A window of all queries. `delays` are those of each query; errors are parts of the true total, and records of a
    group (root mean square); `promised` is the standard error that the total has beside it."""

    start: float
    end: float
    kind: str
    delays: tuple[float, ...]
    read: int
    unread: int
    stall: float
    total: float
    groups: float
    promised: float | None


@dataclass(frozen=True)
class Outcome:
    trial: Trial
    windows: tuple[Seen, ...]
    batch: float  # median seconds
    reported: Array = field(repr=False)  # of each window and port, records
    truth: Array = field(repr=False)
    reported_bytes: Array = field(repr=False)  # of each window
    true_bytes: Array = field(repr=False)

    def of(self, kind: str) -> list[Seen]:
        return [one for one in self.windows if one.kind == kind]


def run_trial(trial: Trial, app: Path, trace: Path, profile: Profile, capacity: Capacity, folder: Path) -> Outcome:
    """Run it; what it wrote stays in the folder until the next one."""
    more = ["--set", f"promise={trial.promise:g}", "--overload", trial.mode]
    more += [] if trial.batch_rows is None else ["--batch-rows", str(trial.batch_rows)]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with watching(folder / "stalls") as stalls:
        summary = run_app(app, trace, "1", capacity, folder, more, quiet=True)
    return outcome(trial, summary, folder, trace, profile, stalls.found)


def outcome(
    trial: Trial, summary: Mapping[str, Any], folder: Path, trace: Path, profile: Profile, stalls: Sequence[Stall]
) -> Outcome:
    records, kept = burst.read_burst(trace), state_of(str(folder / "checkpoint"), CAPACITY)["windows"]
    truth = counted(records)
    reported = placed(read_results(folder, queries.GROUPS), len(truth), truth.shape[1])
    rows = read_results(folder, queries.TOTALS).sort_by("window_start").to_pylist()
    true = burst.sums(records, queries.WINDOW)["bytes"].to_pylist()
    origin = _origin(summary)
    windows = []
    for at, (one, row) in enumerate(zip(kept[queries.TOTALS]["kept"], rows, strict=True)):
        start, end = ((one[name] - START) / SECOND for name in ("start", "end"))
        late = tuple(_delay(query["kept"][at]) for query in kept.values())
        windows.append(
            Seen(
                start,
                end,
                _kind(at, start, end, profile),
                late,
                one["exact"],
                one["triaged"],
                stalled(stalls, origin + start, origin + end + max(late)),
                abs(row["bytes"] / true[at] - 1),
                float(np.sqrt(np.mean((reported[at] - truth[at]) ** 2, where=truth[at] > 0))),
                row["error_bytes"] if row["error_bytes"] is None else row["error_bytes"] / row["bytes"],
            )
        )
    per_batch = summary["seconds"]["per_batch"][1:]
    told_bytes = np.array([row["bytes"] for row in rows], float)
    return Outcome(trial, tuple(windows), median(per_batch), reported, truth, told_bytes, np.array(true, float))


def counted(records: pa.Table) -> Array:
    """Records of each window and port."""
    windows = burst.windows_of(records, queries.WINDOW)
    shape = (int(windows[-1]) + 1, 1 << 16)
    cells = np.bincount(windows * shape[1] + records[queries.KEY].to_numpy(), minlength=shape[0] * shape[1])
    return cells.reshape(shape).astype(float)


def placed(results: pa.Table, windows: int, groups: int) -> Array:
    """The same of what a query says."""
    found = np.zeros((windows, groups))
    at = (results["window_start"].cast(pa.int64()).to_numpy() - START) // (queries.WINDOW * SECOND)
    found[at, results[queries.KEY].to_numpy()] = results["records"].to_numpy()
    return found


def _delay(window: Mapping[str, Any]) -> float:
    return float(window["delay"]) / SECOND


def _origin(summary: Mapping[str, Any]) -> float:
    """When the trace began, in seconds since 1970."""
    clocks = (batch["offsets"]["streams"]["flows"].get("clock") for batch in summary["batches"])
    clock = next(one for one in clocks if one)
    return float(clock["wall"] - (clock["source"] - START)) / SECOND


def _kind(at: int, start: float, end: float, profile: Profile) -> str:
    """Whether a burst reaches into a window; of the first one nothing is known when it begins."""
    calm, begin = min(phase.rate for phase in profile), 0.0
    for phase in profile:
        if phase.rate > calm and begin < end and begin + phase.seconds > start:
            return BURST
        begin += phase.seconds
    return FIRST if at == 0 else CALM
