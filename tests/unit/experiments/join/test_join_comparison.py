"""Ranking by model and by measured time, the points of the figures, and plans at work on them."""

from __future__ import annotations

import pytest

from experiments.join import calibration
from experiments.join.calibration import Calibration, calibrate
from experiments.join.compared import BETTER, MODELS, PAPER, ComparedFigure, ComparedPoint, predictions
from experiments.join.cost import straightness, window_claims
from experiments.join.measure import JoinSetting, PlanTimes, measure, same_results
from experiments.join.operator import Plan
from experiments.join.points import PANELS, THREE, TWO, FigurePoint, three_way, two_way
from experiments.join.ranking import correlation, ranking_claims
from experiments.models.join_costs import StreamStatistics, UnitCosts, bounds
from experiments.models.join_operations import OperationCosts

LAP, EAP10, EAP01, EAP11 = (False, False), (True, False), (False, True), (True, True)
SMALL = (StreamStatistics(50, 60, 5, 0.2), StreamStatistics(50, 60, 1, 0.2))
NO_COSTS = Calibration(UnitCosts(1, 1, 1), OperationCosts(*[1.0] * 8))


def point(seconds: dict[Plan, tuple[float, ...]], predicted: dict[Plan, float], x: float = 1) -> ComparedPoint:
    costs = dict.fromkeys(MODELS, predicted)
    return ComparedPoint(FigurePoint("w1", x, JoinSetting(TWO)), PlanTimes(seconds), costs)


def test_plans_whose_runs_overlap_are_tied() -> None:
    one = point({LAP: (1.0, 1.2, 1.4), EAP10: (1.3, 1.5, 1.6), EAP01: (2.0, 2.1, 2.2)}, {LAP: 2, EAP10: 1, EAP01: 3})
    assert one.times.tied(LAP, EAP10)
    assert not one.times.tied(LAP, EAP01)
    assert [one.times.wins(*pair) for pair in ((LAP, EAP10), (EAP10, LAP))] == [3, 0]
    assert one.ranked(PAPER)
    assert not one.ranked(PAPER, strictly=True)
    assert one.chosen(PAPER) == EAP10
    assert one.best == LAP
    assert one.regret(PAPER) == pytest.approx(1.5 / 1.2)


def test_a_pair_the_wrong_way_round_is_told() -> None:
    one = point({LAP: (1.0, 1.1), EAP10: (2.0, 2.1)}, {LAP: 2, EAP10: 1})
    assert not one.ranked(PAPER)
    assert one.told(PAPER) == "w1 = 1 (LAP/EAP10)"
    # That two plans cost the same is no ranking of plans that differ.
    assert not point({LAP: (1.0, 1.1), EAP10: (2.0, 2.1)}, {LAP: 1, EAP10: 1}).ranked(PAPER)


def test_points_that_rank_wrongly_are_counted_and_named() -> None:
    right = point({LAP: (1.0, 1.1), EAP10: (2.0, 2.1)}, {LAP: 1, EAP10: 2})
    wrong = point({LAP: (1.0, 1.1), EAP10: (2.0, 2.1)}, {LAP: 2, EAP10: 1}, x=7)
    claim = ranking_claims("Fig. 4", [ComparedFigure(True, NO_COSTS, (right,) * 8 + (wrong,) * 2)])[0]
    assert not claim.holds
    assert claim.ours == "hash: 8 of 10, 80% (strictly 8)"
    assert "w1 = 7 (LAP/EAP10)" in claim.why
    assert ranking_claims("Fig. 4", [ComparedFigure(True, NO_COSTS, (right,) * 9 + (wrong,))])[0].holds


def test_what_rises_is_not_called_constant() -> None:
    def figure(last: float) -> ComparedFigure:
        curve = {1000: 1.0, 2000: 2.0, 3000: 2.05, 5000: last}
        made = [point(dict.fromkeys((LAP, EAP10, EAP01, EAP11), (y,)), {LAP: 1}, x) for x, y in curve.items()]
        return ComparedFigure(True, NO_COSTS, tuple(made))

    assert window_claims([figure(2.1)])[1].holds
    assert not window_claims([figure(2.6)])[1].holds


def test_lines_and_shapes() -> None:
    assert straightness([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert straightness([1, 2, 3, 4], [1, 4, 9, 16]) < 0.98
    assert correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert correlation([1, 2, 3], [1, 1, 1]) == 0


@pytest.mark.parametrize(("points", "default", "count"), [(two_way, TWO, 23), (three_way, THREE, 24)])
def test_points_vary_one_parameter(points, default, count) -> None:  # type: ignore[no-untyped-def]
    made = points(True, False)
    assert len(made) == count
    assert {one.panel for one in made} == set(PANELS)
    for one in made:
        changed = [a != b for a, b in zip(one.setting.streams, default, strict=True)]
        assert one.panel in ("λ1", "σ") or not any(changed[1:])
    assert [one.x for one in made if one.panel == "g1"] == [3, 9, 27, 81, 243, 729, 2187, 6561, 19683]


def test_the_default_of_fig_4() -> None:
    sizes = bounds(TWO)
    assert (sizes.out, sizes.sets, sizes.window_matches, sizes.set_matches) == (150, (1500, 10), (500, 500), (150, 1))
    assert (sizes.buckets, sizes.out_buckets) == ((10, 10), 150)


@pytest.mark.parametrize("hashed", [True, False])
def test_plans_at_work(hashed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it runs: times and constants of so small inputs say nothing."""
    monkeypatch.setattr(calibration, "REPEATS", 1)
    setting = JoinSetting(SMALL, hashed)
    times = measure(setting, 2, 3, 0.5, seed=1)
    assert list(times.seconds) == list(setting.query.plans)
    assert all(len(each) == 2 and min(each) >= 0 for each in times.seconds.values())
    found = calibrate(setting, 1, records=500)
    assert found.units.update == found.operations.window
    costs = predictions(setting, found)
    assert set(costs[BETTER]) == set(setting.query.plans)
    assert same_results(setting, 1)
