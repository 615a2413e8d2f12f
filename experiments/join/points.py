"""The points of Fig. 4 and 5 (aggregation-join, Sec. 7.2): one parameter of S_1 varied, all others at their default.

The text gives λ_2 = 500 where λ_1 is varied in Fig. 4, the caption 300 for all else; both are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.join.measure import JoinSetting
from experiments.models.join_costs import StreamStatistics

PANELS = {"w1": "window size", "g1": "groups", "λ1": "stream rate", "σ": "join selectivity"}
GROUPS = tuple(3**power for power in range(1, 10))
SELECTIVITIES = (0.0005, 0.005, 0.05, 0.5)
TWO = (StreamStatistics(300, 5000, 150, 0.1), StreamStatistics(300, 5000, 1, 0.1))
THREE = (StreamStatistics(200, 300, 20, 0.1), *(StreamStatistics(200, 300, 1, 0.1),) * 2)


@dataclass(frozen=True)
class FigurePoint:
    """A panel of the figure, what is varied in it, and all inputs."""

    panel: str
    x: float
    setting: JoinSetting


def two_way(hashed: bool, quick: bool) -> list[FigurePoint]:
    """Fig. 4."""
    return _points(TWO, range(1000, 5001, 1000), (100, 300, 500, 700, 900), 500, hashed, quick)


def three_way(hashed: bool, quick: bool) -> list[FigurePoint]:
    """Fig. 5."""
    return _points(THREE, range(100, 301, 50), (100, 200, 300, 400, 500, 600), 200, hashed, quick)


def _points(
    default: Sequence[StreamStatistics],
    windows: Sequence[int],
    rates: Sequence[int],
    others: float,
    hashed: bool,
    quick: bool,
) -> list[FigurePoint]:
    first, *rest = default
    beside = [replace(one, rate=others) for one in rest]
    found: list[tuple[str, float, Sequence[StreamStatistics]]] = [
        *(("w1", w, (replace(first, window=w), *rest)) for w in windows),
        *(("g1", g, (replace(first, groups=g), *rest)) for g in GROUPS),
        *(("λ1", rate, (replace(first, rate=rate), *beside)) for rate in rates),
        *(("σ", s, [replace(one, selectivity=s) for one in default]) for s in SELECTIVITIES),
    ]
    made = [FigurePoint(panel, x, JoinSetting(tuple(streams), hashed)) for panel, x, streams in found]
    return _ends(made) if quick else made


def _ends(points: Sequence[FigurePoint]) -> list[FigurePoint]:
    """The first, the middle and the last of each panel."""
    kept = []
    for panel in PANELS:
        own = [point for point in points if point.panel == panel]
        kept += [own[0], own[len(own) // 2], own[-2 if panel == "σ" else -1]]
    return kept
