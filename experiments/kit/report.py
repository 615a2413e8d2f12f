"""What an experiment hands back: claims answered one by one, tables of numbers, and a picture.

A claim says whether it holds under the inputs, and by the criterion, that `why` names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Tell = Callable[[str], None]
QUICK_ROWS = 100_000


@dataclass(frozen=True)
class ExperimentSettings:
    """How to run: rows of generated streams, where captures lie, and a short form that only shows that it works."""

    rows: int = 1_000_000
    captures: Path | None = None
    quick: bool = False
    seed: int = 7


@dataclass(frozen=True)
class Claim:
    """`paper` and `ours` are numbers or configurations as text; `why`: inputs, and the reason where it fails."""

    claim: str
    paper: str
    ours: str
    holds: bool
    why: str

    def as_json(self) -> dict[str, Any]:
        return {"claim": self.claim, "paper": self.paper, "ours": self.ours, "holds": bool(self.holds), "why": self.why}


@dataclass(frozen=True)
class Numbers:
    """A table; cells are text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_json(self) -> dict[str, Any]:
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class Line:
    """A curve of a panel; `marks`: points only. `dashed` is for what the paper printed."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    marks: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One diagram of the picture; `ticks` are names for x = 0, 1, …"""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    bottom: float | None = None
    ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """The answer of one experiment."""

    title: str
    claims: tuple[Claim, ...]
    numbers: tuple[Numbers, ...]
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = field(default=())


Experiment = Callable[[ExperimentSettings, Tell], Findings]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Numbers:
    return Numbers(title, tuple(columns), tuple(tuple(cell(value) for value in row) for row in rows))


def cell(value: object) -> str:
    """Numbers as they are read best.

    >>> cell(0.03412), cell(1.0234), cell(123456.0), cell(12), cell("ABCD")
    ('0.0341', '1.023', '123,456', '12', 'ABCD')
    """
    if isinstance(value, float):
        if abs(value) >= 1000:
            return f"{value:,.0f}"
        return f"{value:.3f}" if abs(value) >= 1 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Least and greatest, as text.

    >>> spread([1.2, 1.0, 1.5]), spread([2.0])
    ('1.000–1.500', '2.000')
    """
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low}–{high}"


@dataclass(frozen=True)
class InputAnswer:
    """One input's answer to a claim."""

    where: str
    ours: str
    holds: bool


def judged(claim: str, paper: str, answers: Sequence[InputAnswer], why: str) -> Claim:
    """A claim asked of several inputs: it holds if it holds for all of them, and says for which it does.

    >>> judged("c", "p", [Answer("x", "1", True), Answer("y", "2", False)], "because").why
    'holds for x; fails for y; because'
    """
    groups = {True: "holds for", False: "fails for"}
    parts = [
        f"{word} {', '.join(answer.where for answer in answers if answer.holds is told)}"
        for told, word in groups.items()
        if any(answer.holds is told for answer in answers)
    ]
    ours = "; ".join(f"{answer.where}: {answer.ours}" for answer in answers)
    return Claim(claim, paper, ours, all(answer.holds for answer in answers), "; ".join([*parts, why]))
