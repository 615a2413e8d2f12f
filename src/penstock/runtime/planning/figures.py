"""Figures of a batch: those of the data, by which a plan is thought about again, and what its tasks took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, fsum, inf, log, sqrt
from statistics import median

from penstock.runtime.profile.survey import Survey
from penstock.sharing.graph.grain import union
from penstock.sharing.graph.lattice import Lattice
from penstock.state.protocol import TaskReport

FEW = 64  # groups of a sample, more or less: with the best plan as with the next best they cost nothing
Tasks = Sequence[TaskReport]
Signature = dict[object, float]


def spent(tasks: Tasks) -> float:
    """Nanoseconds of a task in tables and leaves."""
    spent = [float(counts["nanoseconds"]) for task in tasks for counts in task.work.values()]
    return sum(spent) / max(1, len(tasks))


def taken(tasks: Tasks) -> float:
    """Nanoseconds a record in tables and leaves, of the middle task: a plan that is cheaper than its price stays."""
    each = [sum(counts["nanoseconds"] for counts in task.work.values()) / task.rows for task in tasks if task.rows]
    return float(median(each)) if each else inf


def signature(net: Lattice, survey: Survey) -> Signature:
    """Groups in the sample, of the queries and of the finest of all phantoms, and how long flows of many groups are."""
    grains = dict.fromkeys((*net.grains.values(), union(*net.grains.values())))
    groups = {grain: survey.counted(grain, net).groups for grain in grains}
    lengths: Signature = {(grain, "length"): survey.length(grain, net) for grain in grains if groups[grain] > FEW}
    return lengths | {grain: float(FEW + count) for grain, count in groups.items()}


def drift(before: Mapping[object, float], now: Signature) -> float:
    """By which factor figures have changed since then, in the mean square: of many, some always have."""
    changes = [abs(log(now[key] / before[key])) for key in now if key in before]
    return exp(sqrt(fsum(change**2 for change in changes) / len(changes))) if changes else 1.0
