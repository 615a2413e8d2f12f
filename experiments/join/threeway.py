"""aggregation-join, Fig. 5: the eight plans of a three-way join, and what the number of streams does (Sec. 7.2)."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.join.compared import LONGEST, ROUNDS, RUNS, compare_figure
from experiments.join.figures import panels_of
from experiments.join.measure import JoinSetting, PlanTimes, measure
from experiments.join.operator import Plan, plan_name
from experiments.join.points import PANELS, THREE, three_way
from experiments.join.ranking import constants_table, equal_claims, ranking_claims, shape_claim, times_table
from experiments.kit.report import Claim, ExperimentSettings, Findings, InputAnswer, Numbers, Tell, judged, table

ARITIES = (2, 3, 4)
UNIT_SECONDS = {2: 0.001, 3: 0.025, 4: 1.0}  # of the late plan, about: how long rounds are depends on it


def run(settings: ExperimentSettings, tell: Tell) -> Findings:
    quick = settings.quick
    found = [compare_figure(three_way(h, quick), JoinSetting(THREE, h), settings, tell) for h in (True, False)]
    grown = [_arity(m, hashed, settings, tell) for hashed in (True, False) for m in ARITIES]
    tell("results of all plans")
    checked = [point.setting for hashed in (True, False) for point in three_way(hashed, True)][:: 4 if quick else 1]
    return Findings(
        "plans of a three-way join, predicted and measured (aggregation-join, Fig. 5)",
        (
            equal_claims("Theorem 2, Fig. 5", checked, settings.seed),
            *ranking_claims("Fig. 5", found),
            shape_claim("Fig. 5", found),
            *(arity_claim([one for one in grown if one.hashed is hashed]) for hashed in (True, False)),
        ),
        (
            constants_table(found),
            _arities(grown),
            *(times_table(f"Fig. 5, {what}", one, one.panel(panel)) for one in found for panel, what in PANELS.items()),
        ),
        panels_of("Fig. 5", found[0]),
        (
            "λ = 200, w = 300, g1 = 20, g2 = g3 = 1, σ = 0.1 where they are not varied; B = 1021",
            "SUM of each stream by G_1, G_2, G_3; G, J, A uniform integers; the picture is of the hash join",
        ),
    )


@dataclass(frozen=True)
class AtArity:
    """Times with m streams of the default setting."""

    m: int
    hashed: bool
    times: PlanTimes

    @property
    def late(self) -> float:
        return self.times.median((False,) * self.m)

    @property
    def best(self) -> Plan:
        return min(self.times.seconds, key=self.times.median)

    @property
    def gain(self) -> float:
        """How much longer the late plan takes than the best."""
        return self.late / self.times.median(self.best)


def _arity(m: int, hashed: bool, settings: ExperimentSettings, tell: Tell) -> AtArity:
    tell(f"{m} streams")
    streams = (THREE[0], *(THREE[1],) * (m - 1))
    runs = 2 if settings.quick else RUNS
    units = min(10.0, LONGEST / UNIT_SECONDS[m])
    return AtArity(m, hashed, measure(JoinSetting(streams, hashed), runs, ROUNDS, units, settings.seed))


def arity_claim(grown: list[AtArity]) -> Claim:
    gains = [one.gain for one in grown]
    method = "hash" if grown[0].hashed else "nested loop"
    return judged(
        f"Fig. 5: the advantage of early aggregation grows with the arity of the join ({method})",
        "bigger with three streams than with two",
        [
            InputAnswer(f"m = {one.m}", f"LAP {one.gain:.1f} × {plan_name(one.best)}", one.gain > before)
            for one, before in zip(grown, [1.0, *gains], strict=False)
        ],
        "streams with the default setting of Fig. 5, the first with 20 groups, all others with one",
    )


def _arities(grown: list[AtArity]) -> Numbers:
    rows = [
        (one.m, "hash" if one.hashed else "nested loop", one.late * 1e3, plan_name(one.best), one.gain) for one in grown
    ]
    return table("late and best plan by number of streams", ("m", "join", "LAP, ms", "best", "LAP over best"), rows)
