"""One peak on the same records, dealt with in other ways: late results, or worse ones.

| way | is |
| --- | --- |
| triage | what penstock does: one record of 2^k neighbours, with a step for what time there is |
| queue | all are read, however late |
| capped | the same with small micro-batches, as `maxOffsetsPerTrigger` makes them |
| drop | the excess is not read, and nothing stands for it |
| drop, weighted | the same run; counts times arrived over read, as exporters that sample report them |
| summarise | one step for all records, whatever the load |
| exact first | simulated: of as many records as triage read the first of a window exact, a reservoir of the others |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.latency import promises, queries
from benchmarks.latency.promises import PROMISE, Bench
from benchmarks.latency.trial import BURST, CALM, TRIAGE, Outcome, Seen, Trial
from penstock.app.demos import burst

Array = np.ndarray
Progress = Callable[[str], None]
CAPPED_ROWS = 10_000
RESERVOIR = 4_096
SEED = 7


def trials(peak: float) -> list[Trial]:
    return [
        Trial(TRIAGE, peak, PROMISE),
        Trial("queue", peak, PROMISE, "queue"),
        Trial("capped", peak, PROMISE, "queue", CAPPED_ROWS),
        Trial("drop", peak, PROMISE, "drop"),
        Trial("summarise", peak, PROMISE, "summarise"),
    ]


def measured(bench: Bench, peak: float, tell: Progress) -> Iterator[dict[str, Any]]:
    """A line for each way."""
    for trial in trials(peak):
        tell(f"{trial.name}: {peak:g} times what can be read")
        outcome = bench.run(trial)
        tell(f"{trial.name}: {promises.told(outcome)}")
        yield _line(trial.name, peak, outcome.windows, outcome.batch)
        if trial.mode == "drop":
            yield _line("drop, weighted", peak, weighted(outcome), outcome.batch, "of the run before")
        if trial.mode == TRIAGE:
            yield _line("exact first", peak, exact_first(bench, outcome), None, "simulated; reads what triage read")


def weighted(outcome: Outcome) -> tuple[Seen, ...]:
    """All counts and sums of a window times one factor."""
    scales = [(one.read + one.unread) / max(1, one.read) for one in outcome.windows]
    return tuple(
        _estimated(outcome, at, outcome.reported[at] * scale, outcome.reported_bytes[at] * scale, one.delays)
        for at, (one, scale) in enumerate(zip(outcome.windows, scales, strict=True))
    )


def exact_first(bench: Bench, outcome: Outcome) -> tuple[Seen, ...]:
    """Counts and sums of the first records of each window, and those of a reservoir of the others, scaled."""
    records = burst.read_burst(bench.trace(outcome.trial.peak))
    windows, keys = burst.windows_of(records, queries.WINDOW), records[queries.KEY].to_numpy()
    starts, sizes = np.searchsorted(windows, np.arange(len(outcome.windows) + 1)), records["bytes"].to_numpy()
    rng, found = np.random.default_rng(SEED), []
    for at, one in enumerate(outcome.windows):
        rows = np.arange(starts[at], starts[at + 1])
        first = len(rows) if one.unread == 0 else max(0, one.read - RESERVOIR)
        rest = rows[first:]
        held = rng.choice(rest, min(RESERVOIR, len(rest)), replace=False)
        scale = len(rest) / max(1, len(held))
        counts = _ports(keys[rows[:first]]) + scale * _ports(keys[held])
        found.append(_estimated(outcome, at, counts, sizes[rows[:first]].sum() + scale * sizes[held].sum(), ()))
    return tuple(found)


def _ports(keys: Array) -> Array:
    return np.bincount(keys, minlength=1 << 16).astype(float)


def _estimated(outcome: Outcome, at: int, counts: Array, size: float, delays: Sequence[float]) -> Seen:
    """A window with other counts and another sum."""
    truth = outcome.truth[at]
    groups = float(np.sqrt(np.mean((counts - truth) ** 2, where=truth > 0)))
    total = abs(float(size) / outcome.true_bytes[at] - 1)
    return replace(outcome.windows[at], delays=tuple(delays), total=total, groups=groups, promised=None)


def _line(name: str, peak: float, windows: Sequence[Seen], batch: float | None, note: str = "") -> dict[str, Any]:
    rough = [one for one in windows if one.kind == BURST]
    calm = [one for one in windows if one.kind == CALM]
    late = [delay for one in windows for delay in one.delays]
    read, unread = (sum(getattr(one, part) for one in rough) for part in ("read", "unread"))
    return {
        "engine": name,
        "version": "",
        "work": f"{peak:g} times what can be read",
        "part": "beside",
        "peak": peak,
        "promise": PROMISE,
        "seconds": promises.percentile(windows, 99) if late else None,
        "median": promises.percentile(windows, 50) if late else None,
        "greatest": round(max(late), 3) if late else None,
        "delays": [round(max(one.delays), 3) for one in windows if one.delays],
        "ends": [one.end for one in windows],
        "ratio_to_penstock": None,
        "same_answer": all(one.groups == 0 for one in calm),
        "batch_seconds": batch if batch is None else round(batch, 3),
        "read_share": round(read / max(1, read + unread), 4),
        "total_error": round(float(np.mean([one.total for one in rough])), 6),
        "rmse": round(float(np.sqrt(np.mean([one.groups**2 for one in rough]))), 3),
        "note": note,
    }
