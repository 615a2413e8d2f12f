"""Pictures of `cost` and `threeway`: each panel of the paper's figure by its cost function, by ours, and measured."""

from __future__ import annotations

from experiments.join.compared import BETTER, MODELS, PAPER, ComparedFigure
from experiments.join.operator import plan_name
from experiments.join.points import PANELS
from experiments.kit.report import Line, Panel

SEEN = {PAPER: MODELS[PAPER], BETTER: MODELS[BETTER], None: "measured"}


def panels_of(figure: str, one: ComparedFigure) -> tuple[Panel, ...]:
    made = []
    for number, (panel, what) in enumerate(PANELS.items()):
        x = [point.point.x for point in one.panel(panel)]
        for model, name in SEEN.items():
            lines = [
                Line(plan_name(plan), x, [y * 1e3 for y in one.curve(panel, plan, model)])
                for plan in one.points[0].plans
            ]
            title = f"{figure}({'abcd'[number]}), {what}: {name}"
            logs = panel in ("g1", "σ")
            made.append(Panel(title, panel, "ms a unit of time", tuple(lines), log_x=logs, log_y=panel == "σ"))
    return tuple(made)
