"""Predicted cost and measured time of all plans at the points of a figure, and whether they rank the plans alike.

Two plans are *tied* at a point if their measured times differ by less than the noise: their repeated runs overlap. A
model ranks a point as it was measured if it has no two plans the other way round that are not tied; *strictly*, if it
has no two plans the other way round by their medians.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from experiments.join.calibration import Calibration, calibrate
from experiments.join.measure import JoinSetting, PlanTimes, measure
from experiments.join.operator import Plan, plan_name
from experiments.join.points import FigurePoint
from experiments.kit.report import ExperimentSettings, Tell
from experiments.models.join_costs import expected_cost, paper_cost
from experiments.models.join_operations import better_cost

PAPER, EXPECTED, BETTER = "paper", "expected", "better"
MODELS = {
    PAPER: "Eq. 15-26",
    EXPECTED: "Eq. 15-26 with expected sizes",
    BETTER: "operations measured one by one",
}
METHODS = {True: "hash", False: "nested loop"}
RUNS, ROUNDS = 5, 3
LONGEST, MOST_UNITS = 0.04, 40  # seconds of a round of the late plan, about; units of time in it
FEWEST = 20  # records of a stream in a round


@dataclass(frozen=True)
class ComparedPoint:
    """Seconds for a unit of time, measured, and by each model."""

    point: FigurePoint
    times: PlanTimes
    predicted: dict[str, dict[Plan, float]]

    @property
    def plans(self) -> list[Plan]:
        return list(self.times.seconds)

    def swapped(self, model: str, strictly: bool = False) -> Iterator[tuple[Plan, Plan]]:
        """Plans that the model has the other way round."""
        for a, b in combinations(self.plans, 2):
            apart = self.times.median(a) - self.times.median(b)
            predicted = self.predicted[model][a] - self.predicted[model][b]
            if apart * predicted <= 0 and (strictly or not self.times.tied(a, b)):
                yield a, b

    def ranked(self, model: str, strictly: bool = False) -> bool:
        return next(self.swapped(model, strictly), None) is None

    @property
    def best(self) -> Plan:
        return min(self.plans, key=self.times.median)

    def chosen(self, model: str) -> Plan:
        return min(self.plans, key=self.predicted[model].__getitem__)

    def regret(self, model: str) -> float:
        """The measured time of the plan that the model would choose, over the least."""
        return self.times.median(self.chosen(model)) / self.times.median(self.best)

    def told(self, model: str) -> str:
        """Which plans are the wrong way round."""
        pairs = [f"{plan_name(a)}/{plan_name(b)}" for a, b in self.swapped(model)]
        return f"{self.point.panel} = {self.point.x:g} ({', '.join(pairs)})"


@dataclass(frozen=True)
class ComparedFigure:
    """All points of a figure with one join method."""

    hashed: bool
    calibration: Calibration
    points: tuple[ComparedPoint, ...]

    @property
    def name(self) -> str:
        return METHODS[self.hashed]

    def panel(self, panel: str) -> list[ComparedPoint]:
        return [one for one in self.points if one.point.panel == panel]

    def curve(self, panel: str, plan: Plan, model: str | None = None) -> list[float]:
        """Seconds along a panel, measured or by a model."""
        found = self.panel(panel)
        return [one.times.median(plan) if model is None else one.predicted[model][plan] for one in found]


def predictions(setting: JoinSetting, calibration: Calibration) -> dict[str, dict[Plan, float]]:
    """The cost of every plan by every model."""
    units, costs, hashed = calibration.units, calibration.operations, setting.hashed
    costed: dict[str, Callable[[Plan], float]] = {
        PAPER: lambda plan: paper_cost(plan, setting.streams, units, hashed, setting.buckets),
        EXPECTED: lambda plan: expected_cost(plan, setting.streams, units, hashed, setting.buckets),
        BETTER: lambda plan: better_cost(plan, setting.streams, costs, hashed, setting.buckets),
    }
    return {model: {plan: cost(plan) for plan in setting.query.plans} for model, cost in costed.items()}


def compare(
    points: Sequence[FigurePoint], calibration: Calibration, settings: ExperimentSettings, tell: Tell
) -> list[ComparedPoint]:
    found = []
    for number, point in enumerate(points):
        tell(f"{METHODS[point.setting.hashed]}, {point.panel} = {point.x:g}")
        predicted = predictions(point.setting, calibration)
        late = predicted[BETTER][point.setting.query.plans[0]]
        units = min(MOST_UNITS, max(LONGEST / late, FEWEST / min(one.rate for one in point.setting.streams)))
        runs = 2 if settings.quick else RUNS
        found.append(
            ComparedPoint(point, measure(point.setting, runs, ROUNDS, units, settings.seed + number), predicted)
        )
    return found


def compare_figure(
    points: Sequence[FigurePoint], default: JoinSetting, settings: ExperimentSettings, tell: Tell
) -> ComparedFigure:
    """Calibrated at the figure's default, then every point."""
    tell(f"{METHODS[default.hashed]}, calibrating")
    calibration = calibrate(default, settings.seed)
    return ComparedFigure(default.hashed, calibration, tuple(compare(points, calibration, settings, tell)))
