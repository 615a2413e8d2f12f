"""The picture of plans (`explain --plot`): stream at the top, tables below it, queries at the bottom. Needs the extra
`plot`.

Edges are as thick as what flows along them, a table's box is wider the more buckets it has; measured figures stand
below predicted ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from penstock.sharing.model.kinds.registry import is_bounded

FORMATS = (".png", ".svg", ".pdf")
INK, WATER, BURST, PALE, LEAF, PAPER = "#1f2a37", "#1b7f9e", "#e4572e", "#d9edf3", "#fdf3dd", "#ffffff"
STYLE: Any = {"font.size": 8.5, "text.color": INK, "svg.fonttype": "none"}
EACH = 1.62  # inches across for a query
LEVEL = 1.65  # inches down for a level
FINEST = 30_000  # dots across
THICKEST, THINNEST = 16.0, 0.6  # points
NAME = 20  # characters of a name in one line of a box
Box = tuple[float, float]


@dataclass(frozen=True)
class Placed:
    """A relation in the picture: the middle of its box, in inches from the top left."""

    relation: Mapping[str, Any]
    x: float
    y: float
    width: float

    @property
    def height(self) -> float:
        return (0.86 if is_bounded(self.relation["table"]) else 0.62) + (0.27 if self.relation.get("measured") else 0.0)


def draw_plans(path: Path, explained: list[dict[str, Any]]) -> None:
    """All plans of an app, one below the other."""
    with mpl.rc_context(STYLE):
        placed = [place(one["relations"]) for one in explained]
        sizes = [_size(boxes) for boxes in placed]
        width, heights = max(w for w, _ in sizes), [h for _, h in sizes]
        figure = Figure(figsize=(width, sum(heights)), dpi=min(130.0, FINEST / width), facecolor=PAPER)
        grid = figure.add_gridspec(
            len(explained), 1, height_ratios=heights, left=0.01, right=0.99, top=0.995, bottom=0.005, hspace=0.02
        )
        for number, (one, boxes) in enumerate(zip(explained, placed, strict=True)):
            axes = figure.add_subplot(grid[number, 0])
            axes.set_axis_off()
            axes.set_xlim(0, width)
            axes.set_ylim(sizes[number][1], 0)
            _draw(axes, one, boxes)
        figure.savefig(path)


def place(relations: list[dict[str, Any]]) -> list[Placed]:
    """Where every relation stands: queries side by side at the bottom, tables above the middle of what they feed."""
    depths = _depths(relations)
    bottom = 1 + max((depths[i] for i, one in enumerate(relations) if is_bounded(one["table"])), default=-1)
    largest = max((one["buckets"] for one in relations), default=0) or 1
    across: dict[int, float] = {}

    def settle(number: int) -> list[float]:
        """Places the relation and all that it feeds; returns where the queries stand."""
        if not is_bounded(relations[number]["table"]):
            below = [(0.5 + sum(1 for i in across if not is_bounded(relations[i]["table"]))) * EACH]
        else:
            below = [x for i, one in enumerate(relations) if one["parent"] == number for x in settle(i)]
        across[number] = sum(below) / len(below)
        return below

    for number, one in enumerate(relations):
        if one["parent"] is None:
            settle(number)
    return [
        Placed(
            one,
            across[i],
            1.8 + LEVEL * (bottom if not is_bounded(one["table"]) else depths[i]),
            EACH * (0.8 if not is_bounded(one["table"]) else 0.82 + 0.14 * (one["buckets"] / largest) ** 0.5),
        )
        for i, one in enumerate(relations)
    ]


def _depths(relations: list[dict[str, Any]]) -> list[int]:
    found: list[int] = []
    for one in relations:
        found.append(0 if one["parent"] is None else found[one["parent"]] + 1)
    return found


def _size(boxes: list[Placed]) -> tuple[float, float]:
    right = max((box.x + box.width / 2 for box in boxes), default=0.0)
    return max(9.5, right + 0.2), max((box.y for box in boxes), default=1.0) + 0.85


def _draw(axes: Any, explained: Mapping[str, Any], boxes: list[Placed]) -> None:
    ends = [box.x for box in boxes if not is_bounded(box.relation["table"])]
    source = (sum(ends) / len(ends), 0.72)
    for box in boxes:
        above = boxes[box.relation["parent"]] if box.relation["parent"] is not None else None
        _edge(axes, (source[0], source[1] + 0.1) if above is None else (above.x, above.y + above.height / 2), box)
    _title(axes, explained)
    _box(axes, source, 1.7, 0.34, INK, INK)
    axes.text(*source, explained["stream"], ha="center", va="center", color=PAPER, weight="bold", zorder=4)
    for box in boxes:
        _relation(axes, box)


def _title(axes: Any, explained: Mapping[str, Any]) -> None:
    cost, measured = explained["cost"], explained.get("measured")
    text = f"plan {explained['chosen']}"
    if cost["nanoseconds"] is not None:
        text += f": {cost['nanoseconds']:.1f} ns a tuple predicted, {cost['without_sharing']:.1f} without sharing"
    if measured is not None:
        text += f"; {measured['cost']:.1f} measured"
    axes.text(0.1, 0.14, text, ha="left", va="center", fontsize=11.5, weight="bold")
    note = "edges: tuples and entries that flow, per tuple of the stream"
    axes.text(0.1, 0.38, note + ("; measured in red" if measured is not None else ""), ha="left", va="center")


def _edge(axes: Any, start: Box, box: Placed) -> None:
    """As thick as what flows, predicted or, where that is not known, measured."""
    flow = box.relation["predicted"].get("probes_per_tuple")
    if flow is None:
        flow = (box.relation.get("measured") or {}).get("probes_per_tuple", 0.0)
    thick = THINNEST + (THICKEST - THINNEST) * min(1.0, flow)
    end = (box.x, box.y - box.height / 2 + 0.1)
    axes.plot(*zip(start, end, strict=True), color=WATER, alpha=0.4, linewidth=thick, zorder=1)


def _relation(axes: Any, box: Placed) -> None:
    one, direct = box.relation, is_bounded(box.relation["table"])
    height, lines = box.height, _name_lines(one)
    if direct:
        lines.append(f"{one['buckets']:,} buckets")
    _box(axes, (box.x, box.y), box.width, height, PALE if direct else LEAF, WATER if direct else "#c9a24a")
    axes.text(box.x, box.y - height / 2 + 0.06, "\n".join(lines), ha="center", va="top", zorder=4, fontsize=8,
              weight="bold")  # fmt: skip
    figures = [(one["predicted"], INK)]
    if one.get("measured"):
        figures.append((one["measured"], BURST))
    for number, (found, colour) in enumerate(reversed(figures)):
        axes.text(box.x, box.y + height / 2 - 0.06 - 0.145 * number * len(figure_lines(found)),
                  "\n".join(figure_lines(found)), ha="center", va="bottom", color=colour, zorder=4,
                  fontsize=7.5, linespacing=1.15)  # fmt: skip


def _name_lines(relation: Mapping[str, Any]) -> list[str]:
    """A name in at most two lines."""
    name = relation["name"]
    lines = [name[:NAME], name[NAME : 2 * NAME]] if len(name) > NAME else [name]
    return [*lines[:-1], lines[-1][:-1] + "…"] if len(name) > 2 * NAME else lines


def figure_lines(found: Mapping[str, Any]) -> list[str]:
    """What flows in, how much of it collides, and nanoseconds.

    >>> figure_lines({"probes_per_tuple": 0.25, "collision_rate": 0.5, "cost": 3.14})
    ['0.25 in, 50 % collide', '3.1 ns']
    """
    flow, rate, cost = (found.get(name) for name in ("probes_per_tuple", "collision_rate", "cost"))
    text = "" if flow is None else f"{flow:.2g} in"
    text += "" if rate is None else f", {100 * rate:.2g} % collide"
    return [line for line in (text, "" if cost is None else f"{cost:.1f} ns") if line]


def _box(axes: Any, at: Box, width: float, height: float, face: str, edge: str) -> None:
    corner = (at[0] - width / 2 + 0.05, at[1] - height / 2 + 0.05)
    axes.add_patch(
        FancyBboxPatch(corner, width - 0.1, height - 0.1, boxstyle="round,pad=0.05", facecolor=face, edgecolor=edge,
                       linewidth=1.1, zorder=3)
    )  # fmt: skip
