"""A picture of a soak: memory by role, files and bytes of the checkpoint, over time, with the restarts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import nan
from pathlib import Path

from penstock.testing.faults import DRIVER, JVM, WORKER
from support.soak.sampling import MIB, Sample

NAMES = {DRIVER: "driver", JVM: "JVM, resident", "heap": "JVM, live heap", WORKER: "Python workers"}


def draw(samples: Sequence[Sample], path: Path) -> bool:
    """Write the picture; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(10, 8), layout="constrained")
    memory, files, bytes_ = figure.subplots(3, 1, sharex=True)
    for role, name in NAMES.items():
        shown = [sample for sample in samples if sample.memory.get(role)]
        # A gap where a run ended: what lies between two runs belongs to neither.
        gaps = [before.phase != after.phase for before, after in pairwise(shown)]
        values = [sample.memory[role] / MIB for sample in shown]
        broken = [nan if gap else value for value, gap in zip(values, [*gaps, False], strict=True)]
        memory.plot([sample.at / 60 for sample in shown], broken, ".-", label=name, markersize=3)
    memory.set_ylabel("MiB")
    memory.legend(loc="upper right")
    minutes = [sample.at / 60 for sample in samples]
    files.plot(minutes, [sum(sample.files.values()) for sample in samples], label="files of the checkpoint")
    files.plot(minutes, [sample.files["segments"] for sample in samples], label="segments")
    files.set_ylabel("files")
    files.legend(loc="upper right")
    bytes_.plot(minutes, [sample.bytes / MIB for sample in samples], label="checkpoint")
    bytes_.set_ylabel("MiB on disk")
    bytes_.set_xlabel("minutes")
    starts = {sample.phase: sample.at / 60 for sample in reversed(samples)}
    for axes in (memory, files, bytes_):
        axes.set_ylim(bottom=0)
        for start in starts.values():
            axes.axvline(start, color="grey", linewidth=0.5, linestyle=":")
    figure.savefig(path, dpi=110)
    return True
