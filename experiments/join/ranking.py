"""What the paper says of its cost functions, asked of Fig. 4 and 5: ranking and shape (Sec. 7.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.join.compared import BETTER, EXPECTED, MODELS, PAPER, ComparedFigure, ComparedPoint
from experiments.join.measure import JoinSetting, same_results
from experiments.join.operator import plan_name
from experiments.join.points import PANELS
from experiments.kit.report import Claim, InputAnswer, Numbers, judged, table

ENOUGH = 0.9  # of the points
BEARABLE = 1.2  # times the best plan
ALIKE = 0.95  # correlation of a predicted with a measured curve
MOVES = 1.1  # greatest over least of a curve whose shape can be asked
WHY = {
    PAPER: "α_i and n_i are upper bounds, so early plans look dearer than they are while windows hold few records a "
    "group; and U_g does not tell one group after the other from changing ones",
    EXPECTED: "the same functions and constants, expected numbers of distinct values for the bounds",
    BETTER: "expected sizes; probing, steps in chains and updates each with a constant of its own",
}


def equal_claims(figure: str, settings: Sequence[JoinSetting], seed: int) -> Claim:
    """The plans are equivalent (Theorems 1 and 2), at points of the figure."""
    wrong = [setting for setting in settings if not same_results(setting, seed)]
    plans = len(settings[0].query.plans)
    return Claim(
        f"{figure}: all plans have the same AS_out",
        f"equal, {plans} plans",
        f"equal at {len(settings) - len(wrong)} of {len(settings)} points",
        not wrong,
        "full windows and a unit of time on; after every record in the tests, by evaluation from scratch",
    )


def ranking_claims(figure: str, found: Sequence[ComparedFigure]) -> list[Claim]:
    claims = []
    for model, name in MODELS.items():
        answers = [InputAnswer(one.name, *_ranked(one, model)) for one in found]
        wrong = [f"{one.name}: {_wrong(one, model)}" for one in found if _wrong(one, model)]
        claims.append(
            judged(
                f"{figure}: plans rank by predicted cost as by measured time at 90 % of the points ({name})",
                "the same most of the time",
                answers,
                "plans whose runs overlap are tied; strictly: medians; " + "; ".join([WHY[model], *wrong]),
            )
        )
    for model, name in MODELS.items():
        worst = {one.name: max(one.points, key=lambda point: point.regret(model)) for one in found}
        claims.append(
            judged(
                f"{figure}: the plan of least predicted cost takes at most {BEARABLE} × the least time ({name})",
                "an optimizer can choose by it",
                [InputAnswer(where, *_regret(point, model)) for where, point in worst.items()],
                "the worst point, in measured time",
            )
        )
    return claims


def _ranked(one: ComparedFigure, model: str) -> tuple[str, bool]:
    count, strict = (sum(point.ranked(model, strictly) for point in one.points) for strictly in (False, True))
    share = count / len(one.points)
    return f"{count} of {len(one.points)}, {share:.0%} (strictly {strict})", share >= ENOUGH


def _wrong(one: ComparedFigure, model: str) -> str:
    return ", ".join(point.told(model) for point in one.points if not point.ranked(model))


def _regret(point: ComparedPoint, model: str) -> tuple[str, bool]:
    regret = point.regret(model)
    chosen, best = plan_name(point.chosen(model)), plan_name(point.best)
    told = f"{regret:.2f} × at {point.point.panel} = {point.point.x:g}"
    return told if chosen == best else f"{told} ({chosen} for {best})", regret <= BEARABLE


def shape_claim(figure: str, found: Sequence[ComparedFigure]) -> Claim:
    """Curves of cost function and measurement, plan by plan."""
    answers = []
    for one in found:
        alike = {
            f"{plan_name(plan)} by {panel}": correlation(one.curve(panel, plan), one.curve(panel, plan, PAPER))
            for panel in PANELS
            for plan in one.points[0].plans
            if _moves(one.curve(panel, plan))
        }
        low = [name for name, r in alike.items() if r < ALIKE]
        told = f"{len(alike) - len(low)} of {len(alike)} curves, least {min(alike.values()):.2f}"
        answers.append(InputAnswer(one.name, told + (f" ({', '.join(low)})" if low else ""), not low))
    return judged(
        f"{figure}: curves of cost function and prototype have very similar shapes (Eq. 15-26)",
        "very similar",
        answers,
        f"correlation of predicted and measured times of at least {ALIKE}, for every curve that moves by 10 %; with w1 "
        "bounds stop rising long before sets do, and with g1 α/B_g falls below 1 where buckets outnumber groups, as if "
        "a group were found without a look at it",
    )


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Of the times; 0 where one curve does not move."""
    if min(np.ptp(one), np.ptp(other)) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _moves(curve: Sequence[float]) -> bool:
    return max(curve) > MOVES * min(curve)


# -- tables


def times_table(title: str, one: ComparedFigure, points: Sequence[ComparedPoint]) -> Numbers:
    """Predicted and measured milliseconds, plan by plan."""
    plans = points[0].plans
    columns = ("", "times", *(plan_name(plan) for plan in plans), "fastest")
    rows: list[tuple[object, ...]] = []
    for point in points:
        for model in (PAPER, BETTER):
            costs = [point.predicted[model][plan] * 1e3 for plan in plans]
            rows.append((_where(point), MODELS[model], *costs, plan_name(point.chosen(model))))
        rows.append(("", "measured", *(point.times.median(plan) * 1e3 for plan in plans), plan_name(point.best)))
    return table(f"{title}, {one.name}: milliseconds for the records of a unit of time", columns, rows)


def _where(point: ComparedPoint) -> str:
    return f"{point.point.panel} = {point.point.x:g}"


def constants_table(found: Sequence[ComparedFigure]) -> Numbers:
    names = (
        "P",
        "U",
        "U_g",
        "probe, window",
        "probe, set",
        "step, set",
        "update, set",
        "step, AS",
        "same AS",
        "other AS",
    )
    rows = []
    for one in found:
        units, costs = one.calibration.units, one.calibration.operations
        values = (units.probe, units.update, units.group, costs.probe_window, costs.probe_set, costs.set_step,
                  costs.set_update, costs.out_step, costs.out_same, costs.out_other)  # fmt: skip
        rows.append((one.name, *(value * 1e9 for value in values)))
    return table("calibrated constants, nanoseconds", ("join", *names), rows)
