"""A soak: an app of a dozen queries runs for long under load, is killed every few minutes, and must stay as it is.

    python -m support.soak --minutes 60 --seed 7 --json

| module | gives |
| --- | --- |
| `queries` | the app, and what DuckDB is asked instead |
| `driving` | runs of the command line, kills, restarts on one checkpoint |
| `sampling` | memory of all processes, files on disk, every few seconds |
| `checking` | every window once, accounts that close, sampled windows by DuckDB |
| `flatness` | memory and files at the end against the beginning |
| `picture` | the curves |

`soak` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.state import manifest as manifests
from penstock.testing import faults
from support.soak.checking import Finding, check_all, written
from support.soak.driving import Driven, drive
from support.soak.flatness import check_flat
from support.soak.picture import draw

SAMPLED_WINDOWS = 4


@dataclass(frozen=True)
class Soaked:
    """What a soak found, and the figures behind it."""

    minutes: float
    seed: int
    findings: tuple[Finding, ...]
    driven: Driven
    picture: str | None

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        samples = self.driven.samples
        return {
            "minutes": self.minutes,
            "seed": self.seed,
            "holds": self.holds,
            "batches": max((sample.batches for sample in samples), default=0),
            "kills": self.driven.kills,
            "runs": max((sample.phase for sample in samples), default=0),
            "findings": [asdict(finding) for finding in self.findings],
            "story": list(self.driven.story),
            "samples": [asdict(sample) for sample in samples],
            "picture": self.picture,
        }


def soak(work: Path, minutes: float, seed: int, say: Callable[[str], None] = print) -> Soaked:
    """Run for so long in the folder `work`, then check everything."""
    driven = drive(work, minutes * 60, seed, say)
    findings = [*_check_end(driven, seed), *check_flat(driven.samples)]
    drawn = draw(driven.samples, work / "soak.png")
    return Soaked(minutes, seed, tuple(findings), driven, str(work / "soak.png") if drawn else None)


def _check_end(driven: Driven, seed: int) -> list[Finding]:
    ended, checkpoint = driven.ended, driven.launch.checkpoint
    stopped = Finding("stopped cleanly", ended.code == 0, f"exit {ended.code} {ended.messages[-500:]}".strip())
    newest = manifests.newest(checkpoint)
    if ended.summary is None or newest is None:
        return [stopped]
    output = faults.collect(driven.launch.output)
    clean = Finding(
        "no leftovers", not output.leftovers, f"{len(output.files)} result files {output.leftovers}".strip()
    )
    result = written(output, newest.streams["flows"], ended.summary, seed)
    batches = max(1, newest.batch)
    restarts = {one.phase: one.batches for one in reversed(driven.samples)}
    begin = result.source.clock.start
    times = [begin + (result.watermark - begin) * at // batches for phase, at in restarts.items() if phase > 1]
    return [stopped, clean, *check_all(result, SAMPLED_WINDOWS, seed, times)]
