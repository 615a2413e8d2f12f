"""The benchmark `latency`: delays that are promised, in bursts of known size; parts of it are the engines.

| part | says |
| --- | --- |
| `peaks` | how many windows keep the promise at 2, 5 and 10 times what can be read, and how far they are off |
| `beside` | the same peak with a queue, with capped batches, by dropping, by summarising all |
| `reading` | what a record costs that is read, and one that is left unread, by source; nothing is slowed down |
| `soak` | memory over burst after burst (with --soak MINUTES) |

Runs are slowed down to a known number of records a second (`penstock.app.demos.capacity`), so cores have little to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.comparisons.peers import named
from benchmarks.latency import beside, promises, reading, soak
from benchmarks.measure import machine
from penstock.errors import ConfigError

Progress = Callable[[str], None]

WANTED, QUICK_WANTED = 40_000.0, 20_000.0  # records a second that a run can read
SOAK_WANTED = 10_000.0
SECONDS, QUICK_SECONDS = 20.0, 8.0  # of a burst
REPEAT = 3
BESIDE = 5.0
QUICK_ROWS = 500_000


class Part(NamedTuple):
    """A part of the benchmark."""

    name: str


PARTS = tuple(Part(name) for name in ("peaks", "beside", "reading", "soak"))


def run(
    *,
    work: Path,
    rows: int = reading.ROWS,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
    repeat: int | None = None,
    peaks: Sequence[float] | None = None,
    seconds: float | None = None,
    minutes: float | None = None,
) -> dict[str, Any]:
    """Return the figures as JSON data. `rows` are those of `reading`, `peaks` multiples of what can be read, `seconds`
    the length of a burst, `minutes` those of the soak; `engines` are parts."""
    tell = progress or (lambda text: None)
    parts = {part.name for part in named(PARTS, engines)} - (set() if minutes else {"soak"})
    parts -= {"beside"} if quick and not engines else set()
    chosen = tuple(peaks or ((BESIDE,) if quick else promises.PEAKS))
    length = seconds or (QUICK_SECONDS if quick else SECONDS)
    for peak in chosen:
        if not 1 <= peak <= 100:
            raise ConfigError(f"a burst cannot be {peak:g} times what can be read", "--peaks takes 1 to 100")
    results: list[dict[str, Any]] = []
    report = {"name": "latency", "machine": machine.describe(), "rows": rows, "results": results}
    if "reading" in parts:
        results += reading.measured(work, min(rows, QUICK_ROWS) if quick else rows, tell)
    if parts & {"peaks", "beside"}:
        bench = promises.arranged(work, QUICK_WANTED if quick else WANTED, length, tell)
        report |= {"capacity": round(bench.capacity.rate), "burst_seconds": length}
        if "peaks" in parts:
            results += promises.measured(bench, chosen, repeat or (1 if quick else REPEAT), tell)
        if "beside" in parts:
            results += beside.measured(bench, BESIDE, tell)
            report |= _drawn(work, results)
    if "soak" in parts and minutes:
        results.append(_soaked(work, minutes, tell))
    return report


def _soaked(work: Path, minutes: float, tell: Progress) -> dict[str, Any]:
    return soak.measured(promises.arranged(work, SOAK_WANTED, soak.BURST_SECONDS, tell), minutes, tell)


def _drawn(work: Path, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Where the picture is; nothing where matplotlib is not installed."""
    try:
        from benchmarks.latency.picture import draw_beside
    except ImportError:
        return {}
    path = work / "latency.png"
    draw_beside(path, [line for line in results if line["part"] == "beside"])
    return {"picture": str(path)}
