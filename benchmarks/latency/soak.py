"""Burst after burst through one run, and the memory of all its processes beside: it must stay where it is.

Memory is each process's own and its share of what it has in common with others (Pss): pages of mapped files, too, so
the trace is counted as far as it lies in memory. Linux alone tells that.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.latency import promises
from benchmarks.latency.promises import CALM_LOAD, PROMISE, SEED, Bench
from benchmarks.latency.trial import BURST, CALM, Trial, run_trial
from penstock.app.demos import burst
from penstock.app.demos.burst import Phase, Profile

Progress = Callable[[str], None]
PEAK = 5.0
CALM_SECONDS, BURST_SECONDS = 40.0, 10.0
EVERY = 2.0  # seconds between looks
FLAT = 1.1  # the last quarter against the second
PARTS = ("anonymous", "files")
Sample = tuple[float, int, int]  # seconds, bytes of its own, bytes of mapped files


def profile_of(rate: float, minutes: float) -> Profile:
    """Calm and burst in turns, with calm at both ends."""
    calm = Phase(CALM_SECONDS, CALM_LOAD * rate)
    cycles = max(1, round(60 * minutes / (CALM_SECONDS + BURST_SECONDS)))
    return (*(phase for _ in range(cycles) for phase in (calm, Phase(BURST_SECONDS, PEAK * rate))), calm)


def measured(bench: Bench, minutes: float, tell: Progress) -> dict[str, Any]:
    profile = profile_of(bench.capacity.rate, minutes)
    trace = bench.work / f"soak-{burst.records_of(profile)}.arrow"
    tell(f"soak: {burst.seconds_of(profile):,.0f} seconds, {burst.records_of(profile):,} records")
    if not trace.exists():
        burst.write_burst(trace, profile, SEED)
    trial = Trial("soak", PEAK, PROMISE)
    with sampling(os.getpid()) as samples:
        outcome = run_trial(trial, bench.app, trace, profile, bench.capacity, bench.work / "soak")
    own = [one for one in outcome.windows if one.kind in (CALM, BURST)]
    return {
        "engine": "penstock",
        "version": "",
        "work": f"soak: {len(profile) // 2} bursts of {PEAK:g} times what can be read",
        "part": "soak",
        "seconds": round(burst.seconds_of(profile), 1),
        "ratio_to_penstock": None,
        "same_answer": all(one.total == 0 and one.groups == 0 for one in outcome.of(CALM)),
        "delays": promises.summed(own, PROMISE, outcome.batch),
        "memory": growth(samples),
        "samples": [[round(at, 1), anonymous, files] for at, anonymous, files in samples],
        "note": "",
    }


def growth(samples: Sequence[Sample]) -> dict[str, Any]:
    """Means over quarters of the time, in bytes; flat if the last is about the second. The first has the start."""
    if len(samples) < 8:
        return {"note": "too short to say"}
    quarters = np.array_split(np.array([sample[1:] for sample in samples], float), 4)
    found: dict[str, Any] = {
        name: [round(float(quarter[:, at].mean())) for quarter in quarters] for at, name in enumerate(PARTS)
    }
    own = found[PARTS[0]]
    return found | {"growth": round(own[3] / max(1, own[1]), 3), "flat": own[3] <= FLAT * own[1]}


@contextmanager
def sampling(root: int) -> Iterator[list[Sample]]:
    """Memory of all processes below this one, now and then."""
    samples: list[Sample] = []
    over, began = threading.Event(), time.monotonic()

    def look() -> None:
        while not over.wait(EVERY):
            anonymous, files = memory_below(root)
            samples.append((time.monotonic() - began, anonymous, files))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield samples
    finally:
        over.set()
        looking.join()


def memory_below(root: int) -> tuple[int, int]:
    """Bytes of all descendants: what is theirs, and what is of mapped files."""
    parents = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    below, more = set[int](), {root}
    while more:
        more = {process for process, parent in parents.items() if parent in more and process not in below}
        below |= more
    found = [_shares(process) for process in below]
    return sum(anonymous for anonymous, _ in found), sum(files for _, files in found)


def _shares(process: int) -> tuple[int, int]:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0, 0
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return kilobytes.get("Pss_Anon", 0) << 10, (kilobytes.get("Pss_File", 0) + kilobytes.get("Pss_Shmem", 0)) << 10
