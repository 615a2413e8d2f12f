"""Constants of the cost functions, measured by running the operator (aggregation-join, Sec. 7.1.1).

"Their values are obtained by measuring the execution time for processing 10,000 tuples and computing the average per
tuple": records of one of two streams come and go, and their partners in the other one are

| partners | a record in or out costs |
| --- | --- |
| none | the update of a window; with an EA operator, also that of a set |
| missed: in the same buckets, with other keys | also the entries probed |
| met: with its key | also the tuples joined |

Trials take turns, and each repeat has its arrays in other places of memory. The paper's U_g is that of the late plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from experiments.join.events import Records, counted_events
from experiments.join.measure import JoinSetting, records_of, timed
from experiments.join.operator import AggregationJoin, Plan, Words
from experiments.models.join_costs import UnitCosts, bounds, expected
from experiments.models.join_operations import MeasuredOperations, OperationCosts

RECORDS = 10_000
REPEATS = 7
NONE, MISSED, MET = "none", "missed", "met"
LATE: Plan = (False, False)
EARLY: Plan = (True, False)
LONG = 10  # entries of a chain of the output, to tell what one more costs


@dataclass(frozen=True)
class Calibration:
    """The constants of both models, for one join method."""

    units: UnitCosts
    operations: OperationCosts


@dataclass(frozen=True)
class Trial:
    """Records of stream `coming` against such partners in the other one."""

    setting: JoinSetting
    plan: Plan
    partners: str
    coming: int = 0


def calibrate(setting: JoinSetting, seed: int, records: int = RECORDS) -> Calibration:
    """At the inputs of a set of experiments; of more streams the first two are taken.

    S_1 should have several groups and S_2 one: then tuples of S_1's records are of one group, those of S_2's are not.
    """
    pair = replace(setting, streams=setting.streams[:2])
    first, second = pair.streams
    short = replace(pair, streams=(replace(first, groups=1), second))
    chained = replace(pair, out_buckets=max(1, min(first.groups, pair.out_buckets) // LONG))
    seconds = _timed(
        {
            "alone": Trial(pair, LATE, NONE),
            "missed": Trial(pair, LATE, MISSED),
            "met": Trial(pair, LATE, MET),
            "missed by S_2": Trial(pair, LATE, MISSED, 1),
            "met by S_2": Trial(pair, LATE, MET, 1),
            "set missed": Trial(pair, EARLY, MISSED, 1),
            "set": Trial(pair, EARLY, NONE),
            "short set": Trial(short, EARLY, NONE),
            "chained": Trial(chained, LATE, MET, 1),
        },
        seed,
        records,
    )
    return Calibration(_units(pair, seconds), _operations(pair, short, chained, seconds))


def _units(setting: JoinSetting, seconds: Mapping[str, float]) -> UnitCosts:
    """P, U and U_g: records of S_1 against W_2."""
    sizes = bounds(setting.streams, setting.buckets)
    tuples = sizes.window_matches[1] * sizes.out / sizes.out_buckets
    probed = (seconds["missed"] - seconds["alone"]) / _entries(setting, setting.streams[1].window, 1)
    return UnitCosts(probed, seconds["alone"], (seconds["met"] - seconds["missed"]) / tuples)


def _operations(
    setting: JoinSetting, short: JoinSetting, chained: JoinSetting, seconds: Mapping[str, float]
) -> OperationCosts:
    sizes = expected(setting.streams, setting.buckets)
    alone, steps, few = seconds["alone"], _walked(setting), _walked(short)
    step = max(0.0, (seconds["set"] - seconds["short set"]) / (steps - few)) if steps > few else 0.0
    ones, others = (sizes.window_matches[j] for j in (1, 0))
    other = (seconds["met by S_2"] - seconds["missed by S_2"]) / others
    further = (_uncosted(chained).out_chain - _uncosted(setting).out_chain) / 2
    longer = (seconds["chained"] - seconds["met by S_2"]) / others
    return OperationCosts(
        window=alone,
        probe_window=(seconds["missed"] - alone) / _entries(setting, setting.streams[1].window, 1),
        probe_set=(seconds["set missed"] - alone) / _entries(setting, sizes.sets[0], 0),
        set_step=step,
        set_update=max(0.0, seconds["short set"] - alone - few * step),
        out_step=max(0.0, longer / further) if further > 0 else step,
        out_same=(seconds["met"] - seconds["missed"]) / ones,
        out_other=other,
    )


def _walked(setting: JoinSetting) -> float:
    """Entries of AS_1 on the way to a group."""
    costs = _uncosted(setting)
    return costs.walked(0, costs.sizes.sets[0] / costs.sizes.buckets[0])


def _uncosted(setting: JoinSetting) -> MeasuredOperations:
    """For what is only counted."""
    sizes = expected(setting.streams, setting.buckets)
    sizes = replace(sizes, out_buckets=min(setting.streams[0].groups, setting.out_buckets))
    return MeasuredOperations(setting.streams, sizes, OperationCosts(*[0.0] * 8), setting.hashed)


def _entries(setting: JoinSetting, entries: float, stream: int) -> float:
    """That a record meets of so many."""
    return entries / (min(setting.streams[stream].keys, setting.buckets) if setting.hashed else 1)


# -- trials


def _timed(trials: Mapping[str, Trial], seed: int, records: int) -> dict[str, float]:
    """Seconds a record in or out, trials taking turns."""
    rng = np.random.default_rng(seed)
    given = {name: _events(trial, records, rng) for name, trial in trials.items()}
    found: dict[str, list[float]] = {name: [] for name in trials}
    for _ in range(REPEATS):
        for name, trial in trials.items():
            before, after = given[name]
            join = AggregationJoin(trial.setting.query, trial.plan, rng)
            join.run(before)
            found[name].append(timed(join, after))
    return {name: median(each) / (2 * records) for name, each in found.items()}


def _events(trial: Trial, records: int, rng: np.random.Generator) -> tuple[Words, Words]:
    """What fills the windows, and what is timed."""
    streams, coming = trial.setting.streams, trial.coming
    units = [records / one.rate if k == coming else 0.0 for k, one in enumerate(streams)]
    made = [records_of(one, units[k], k, rng) for k, one in enumerate(streams)]
    if trial.partners == NONE:
        made[1 - coming] = _none(made[1 - coming])
    if trial.partners == MISSED:
        made[coming] = replace(made[coming], keys=made[coming].keys + streams[1 - coming].keys)
    times, events = counted_events(made, [one.window for one in streams])
    return events[times < 0], events[times >= 0]


def _none(records: Records) -> Records:
    return Records(*(column[:0] for column in (records.times, records.groups, records.keys, records.values)))
