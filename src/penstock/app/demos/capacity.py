"""How much a run can read, made a known number: its tasks are slowed down until it is.

    a short plain run, tasks dragged ──► records a second ──► the drag that makes it `wanted`

Dragged tasks sleep for each record that they read (`PENSTOCK_DRAG`), so a run reads about the same on any machine, and
cores have nothing to do. Where even a run without drag reads less than is wanted, it stays what it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from penstock.errors import RunError

TASKS = 2  # side by side, also on one core: they sleep most of the time
MASTER = f"local[{TASKS}]"
BATCH_ROWS = 60_000  # of the short run: as long as batches of a burst


@dataclass(frozen=True)
class Capacity:
    """Nanoseconds that a task sleeps for each record, and the records a second that a run then reads."""

    drag: float
    rate: float

    @property
    def environment(self) -> Mapping[str, str]:
        return {"PENSTOCK_DRAG": f"{self.drag:.0f}"}


def measured(app: Path, trace: Path, wanted: float, folder: Path, more: Sequence[str] = ()) -> Capacity:
    """By a run over a short trace as fast as it goes."""
    guess = Capacity(0.8 * TASKS * 1e9 / wanted, 0)
    summary = run_app(app, trace, "max", guess, folder, ["--batch-rows", str(BATCH_ROWS), *more], quiet=True)
    return dragged(guess.drag, per_record(summary), wanted)


def per_record(summary: Mapping[str, Any]) -> float:
    """Nanoseconds of a record in a usual batch; the first ones are cold, the last may be small."""
    rows, seconds = [batch["rows"] for batch in summary["batches"]], summary["seconds"]["per_batch"]
    full = [1e9 * taken / count for count, taken in zip(rows, seconds, strict=True) if 2 * count >= max(rows)]
    return float(median(full[1:] or full))


def dragged(drag: float, taken: float, wanted: float) -> Capacity:
    """The drag for a capacity, where a record took so many nanoseconds with another one.

    >>> dragged(40_000, 28_000, 40_000)
    Capacity(drag=34000.0, rate=40000.0)
    >>> dragged(40_000, 70_000, 40_000)
    Capacity(drag=0.0, rate=20000.0)
    """
    own = taken - drag / TASKS
    drag = max(0.0, TASKS * (1e9 / wanted - own))
    return Capacity(drag, 1e9 / (own + drag / TASKS))


def run_app(
    app: Path, trace: Path, speed: str, capacity: Capacity, folder: Path, more: Sequence[str] = (), quiet: bool = False
) -> dict[str, Any]:
    """`penstock run` of an app with a `stream` and a `speed`, as a process of its own; its summary. State and results
    go below the folder."""
    command = [sys.executable, "-m", "penstock", "run", str(app), "--json", "--overwrite", "--master", MASTER]
    command += ["--set", f"stream=arrow:{trace}", "--set", f"speed={speed}", "--parallelism", str(TASKS)]
    command += ["--checkpoint", str(folder / "checkpoint"), "--output", str(folder / "results"), *more]
    done = subprocess.run(
        [*command, *(["--quiet"] if quiet else [])],
        env={**os.environ, **capacity.environment},
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    if done.returncode:
        raise RunError(f"the run ended with code {done.returncode}", "what it said is above")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
