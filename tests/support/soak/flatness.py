"""Whether memory and files stayed flat, from the samples of a soak.

A run needs a while to warm up (the JVM compiles, workers fork, pools fill), so the first part of every run is left
out. Compared are the medians in the first and the last third of the soak, at the same ages of runs, and in the second
and the last third of the longest run: restarts cannot hide what grows inside a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from penstock.testing.faults import DRIVER, JVM, WORKER
from support.soak.checking import Finding
from support.soak.sampling import MIB, Sample

WARM_SECONDS = 45.0
ROLES = (DRIVER, JVM, "heap", WORKER)
# What may be added from one third to the other: a share, and so many bytes. The JVM gives memory back when it likes.
TOLERANCE = {DRIVER: (0.05, 16 * MIB), JVM: (0.15, 128 * MIB), "heap": (0.10, 16 * MIB), WORKER: (0.10, 64 * MIB)}
MOST_FILES = 160  # of a checkpoint: ten batches of Spark's logs with checksums, live segments, garbage of one batch


def check_flat(samples: Sequence[Sample]) -> Iterator[Finding]:
    """Memory by role, then files."""
    steady = [sample for sample in samples if sample.age >= WARM_SECONDS and sample.batches > 0]
    for role in ROLES:
        yield _over_runs(role, steady)
        yield _inside(role, steady)
    yield _files(samples)


def _over_runs(role: str, steady: Sequence[Sample]) -> Finding:
    """Median of the first third of the soak against that of the last, of runs of the same age."""
    name = f"memory of {role}, first and last third of the soak"
    known = [sample for sample in steady if sample.memory.get(role)]
    whole = max((sample.at for sample in steady), default=0.0)
    first = [sample for sample in known if sample.at < whole / 3]
    last = [sample for sample in known if sample.at >= whole * 2 / 3]
    age = min(max((sample.age for sample in part), default=0.0) for part in (first, last))
    old, new = ([sample.memory[role] for sample in part if sample.age <= age] for part in (first, last))
    return _compared(name, role, old, new)


def _inside(role: str, steady: Sequence[Sample]) -> Finding:
    """Median of the second third of the longest run against that of the last."""
    name = f"memory of {role}, within the longest run"
    phases = {sample.phase for sample in steady}
    if not phases:
        return Finding(name, False, "no steady samples")
    longest = max(phases, key=lambda phase: sum(1 for sample in steady if sample.phase == phase))
    run = [sample for sample in steady if sample.phase == longest and sample.memory.get(role)]
    third = -(-len(run) // 3)
    second, last = ([one.memory[role] for one in part] for part in (run[third : 2 * third], run[2 * third :]))
    found = _compared(name, role, second, last)
    slope = growth(run[third:], role)
    per = f"; {slope / MIB * 1000:+.2f} MiB per 1000 batches" if slope is not None else ""
    return Finding(found.name, found.holds, found.detail + per)


def growth(run: Sequence[Sample], role: str) -> float | None:
    """Bytes per batch: the median of the slopes between samples of the first and of the second half (Theil, Sen)."""
    half = len(run) // 2
    pairs = zip(run[:half], run[-half:], strict=True) if half else ()
    slopes = [(b.memory[role] - a.memory[role]) / (b.batches - a.batches) for a, b in pairs if b.batches > a.batches]
    return median(slopes) if slopes else None


def _compared(name: str, role: str, first: Sequence[int], last: Sequence[int]) -> Finding:
    if not first or not last:
        return Finding(name, False, f"too few samples: {len(first)} and {len(last)}")
    before, after = median(first), median(last)
    share, room = TOLERANCE[role]
    holds = after <= before * (1 + share) + room
    return Finding(name, holds, f"{before / MIB:.1f} MiB, then {after / MIB:.1f} MiB")


def _files(samples: Sequence[Sample]) -> Finding:
    counts = [sum(sample.files.values()) for sample in samples]
    most = max(counts, default=0)
    parts = {name: max(sample.files.get(name, 0) for sample in samples) for name in samples[-1].files}
    detail = f"at most {most}, median {median(counts):.0f}; most by folder: {parts}"
    return Finding("files of the checkpoint", most <= MOST_FILES, detail)
