"""Measure what the engine's operations cost on this machine (`sharing.model.unit_costs`): once, in a second.

`entries` has what comes before the leaves and in them, `partials` and `rollups` what comes behind. All of them run the
engine's own code, in a process that is set up as a worker is: there huge pages and what the C library gives back to the
system make it cost something else. The result is kept in the user's cache folder for this processor and these kernels,
and measured again by `calibrated(fresh=True)`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

import xxhash

import penstock
from penstock.runtime.machine import worker_environment
from penstock.sharing.model.unit_costs import CostBySize, Costs, PerRow

CURVES = ("probe", "recent", "insert", "lone")  # of the costs, those by size
ROWS = ("segment", "merge", "overlapping", "rolled")  # those of rows and their columns
# And those that are one number.
NUMBERS = (
    "fold", "word", "passing", "appended", "fresh", "block", "merging", "grouped", "read", "coding", "finish", "shown",
    "close", "spelled", "ordered", "touched",
)  # fmt: skip
# What is measured by `entries`, `partials` and `rollups`: others cost something else. These are names, since a run that
# finds costs measured has no use for the modules.
MEASURED = (
    *(f"kernels.{name}" for name in ("hashing", "tables.probe", "tables.lru", "tables.fold", "tables.columns")),
    *(f"kernels.tables.{name}" for name in ("merge", "order", "pack", "rolling")),
    *(
        f"runtime.merge.{name}"
        for name in ("merge", "words", "shares", "windows", "item", "results.finish", "results.finisher")
    ),
    *(f"runtime.merge.rolling.{name}" for name in ("rolling", "coding", "attributes", "rollup")),
    *(f"runtime.profile.{name}" for name in ("entries", "partials", "rollups", "trials")),
    *(f"runtime.tables.{name}" for name in ("leaf", "append", "table", "rows", "chunk")),
    "state.segments.write",
)
PATIENCE = 60.0  # seconds for a process that measures: it should take two


@lru_cache(maxsize=1)
def calibrated(fresh: bool = False) -> Costs:
    """The unit costs of this machine."""
    path = kept_at()
    known = None if fresh or path is None else _load(path)
    if known is None:
        known = measured_apart() or measure()
        if path is not None:
            store(path, asdict(known))
    return known


def measure() -> Costs:
    from penstock.runtime.profile import entries, partials, rollups

    entering = entries.measured_entries()
    with tempfile.TemporaryDirectory(prefix="penstock-costs-") as folder:
        behind = partials.measured_partials(Path(folder))
        made = rollups.measured_roll_ups(Path(folder))
    return Costs(**vars(entering), **vars(behind), **vars(made))


def measured_apart() -> Costs | None:
    """What a process measures that is like a worker; None where there can be none."""
    command = [sys.executable, "-P", "-m", __name__]
    try:
        done = subprocess.run(command, env=worker_environment(), capture_output=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return _read(done.stdout)


def kept_at() -> Path | None:
    """Where the costs are kept."""
    return place_of("costs", MEASURED)


def place_of(name: str, measured: Iterable[str]) -> Path | None:
    """Where costs of this machine are kept; None for a user without a home."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return home / "penstock" / f"{name}-{_content(measured)}-{platform.machine()}-{_processor()}.json"


def _content(modules: Iterable[str]) -> str:
    """What is measured, in short."""
    digest, package = xxhash.xxh3_64(), Path(penstock.__file__).parent
    for name in modules:
        with suppress(OSError):
            digest.update(package.joinpath(*name.split(".")).with_suffix(".py").read_bytes())
    return digest.hexdigest()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2] for line in lines if line.startswith("model name")), platform.processor())
    return "".join(letter if letter.isalnum() else "_" for letter in name.strip()) or "unknown"


def _load(path: Path) -> Costs | None:
    try:
        return _read(path.read_bytes())
    except OSError:
        return None


def _read(text: bytes) -> Costs | None:
    """Costs as they are written; None if these are none."""
    try:
        found = json.loads(text)
        rest: dict[str, Any] = {name: float(found[name]) for name in NUMBERS}
        rest |= {name: _per_row(found[name]) for name in ROWS}
        rest |= {name: _curve(found[name]) for name in CURVES}
        kept = Costs(**rest)
    except (ValueError, LookupError, TypeError):
        return None
    return kept if _sound(kept) else None


def _curve(points: Iterable[Iterable[float]]) -> CostBySize:
    return tuple((float(size), float(cost)) for size, cost in points)


def _per_row(found: Mapping[str, float]) -> PerRow:
    return PerRow(float(found["row"]), float(found["column"]))


def _sound(costs: Costs) -> bool:
    """Whether this can have been measured."""
    curves = [getattr(costs, name) for name in CURVES]
    points = [point for curve in curves for point in curve]
    rows = (number for name in ROWS for number in vars(getattr(costs, name)).values())
    numbers = [*(number for point in points for number in point), *rows, *(getattr(costs, name) for name in NUMBERS)]
    rising = all(list(curve) == sorted(set(curve)) for curve in curves)
    return all(curves) and rising and all(isfinite(n) and n > 0 for n in numbers)


def store(path: Path, costs: Mapping[str, object]) -> None:
    """Best effort: a machine without such a folder measures again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(costs))
        os.replace(aside, path)
    except OSError:
        return


if __name__ == "__main__":
    print(json.dumps(asdict(measure())))
