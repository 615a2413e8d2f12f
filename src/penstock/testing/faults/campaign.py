"""A campaign: seeded random kills of any app, several on one checkpoint, each lineage run to its end and checked.

    random_kills ──► Lineage.disturb … disturb ──► a run to the end ──► checks ──► next lineage … ──► Campaign

A kill that comes too late (the run had ended) is made up for. Every failure carries the seed and what was done.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.faults import POINTS
from penstock.testing.asserts import assert_account_closes
from penstock.testing.faults.outputs import Output, assert_no_traceback, assert_same_output, require
from penstock.testing.faults.processes import DRIVER, JVM, WORKER, Strike, await_orphans, clean_up, strike
from penstock.testing.faults.runs import Ended, Fault, Launch, Running, await_that, committed, start, wait

# Points that Python workers come to; the others are the driver's.
WORKER_POINTS = (
    "source.read",
    "task.chunk",
    "segment.write",
    "segment.close",
    "merge.block",
    "merge.write",
    "sink.stage",
)
# The most visits to wait for: a few batches' worth, so that several kills fit into one lineage.
VISITS = {
    "driver.start": 1,
    "segment.write": 12,
    "merge.block": 20,
    "merge.write": 6,
    "sink.stage": 6,
    "sink.rename": 12,
}
OTHER_VISITS = 4


@dataclass(frozen=True)
class Blows:
    """Whom strikes hit, and within how many seconds of the start of a run those do that wait for no batch."""

    roles: tuple[str, ...] = (DRIVER, JVM, WORKER)
    within: float = 15.0

    @property
    def fatal(self) -> tuple[str, ...]:
        """Roles that a run does not survive."""
        return tuple(role for role in self.roles if role != WORKER)


WITH_SPARK, WITHOUT_SPARK = Blows(), Blows((DRIVER, WORKER), 2.0)


@dataclass(frozen=True)
class Kill:
    """One disturbed run: a fault at a named point, a strike, or one after the other."""

    fault: Fault | None = None
    strike: Strike | None = None

    def count(self) -> int:
        return (self.fault is not None) + (self.strike is not None)

    def sooner(self, choose: random.Random, blows: Blows = WITH_SPARK) -> Kill:
        """What to try after it came too late. An app need not come to every point: then a strike does as well."""
        if self.fault is not None and self.fault.visit > 1:
            return replace(self, fault=replace(self.fault, once=True, visit=1))
        return Kill(strike=Strike(choose.choice(blows.fatal), 0, choose.uniform(0, blows.within * 8 / 15)))


@dataclass
class Lineage:
    """Runs on one checkpoint, and what was done to them."""

    launch: Launch
    logs: Path
    log: list[str] = field(default_factory=list)
    runs: list[Running] = field(default_factory=list)

    def disturb(self, kill: Kill, choose: random.Random) -> tuple[Ended, bool]:
        """One run with a kill; returns how it ended, and whether everything hit."""
        running = start(self.launch, self.logs, kill.fault)
        self.runs.append(running)
        hit = True
        if kill.strike is not None:
            if kill.fault is not None:
                hit = await_that(running, running.fired.exists)
            hit = strike(running, kill.strike, choose) is not None and hit
        ended = wait(running)
        if kill.fault is not None:
            hit = hit and (ended.fired if kill.fault.once else ended.code != 0)
        self.log.append(f"{kill} hit: {hit}, exit {ended.code}, {committed(self.launch.checkpoint)} batches")
        print(self.log[-1])
        if kill.strike is None or kill.strike.role == WORKER:  # without its JVM, PySpark's threads say what they like
            assert_no_traceback(ended, "\n".join(self.log))
        return ended, hit

    def clean_up(self) -> None:
        for running in self.runs:
            clean_up(running)


Check = Callable[[Lineage, Ended], None]


@dataclass(frozen=True)
class Campaign:
    """What was done: kills that hit and that came too late, lineages, and a line for every run."""

    seed: int
    landed: int
    missed: int
    lineages: int
    log: tuple[str, ...]


def random_kills(count: int, choose: random.Random, blows: Blows = WITH_SPARK) -> list[Kill]:
    """At least `count` kills: every point (as far as the count goes), some followed by a strike, and strikes."""
    points = choose.sample(POINTS, min(len(POINTS), max(1, count // 2)))
    kills = [Kill(_random_fault(point, choose)) for point in points]
    for point in choose.sample(WORKER_POINTS, min(2, count // 8)):
        blow = _random_strike(choose.choice(blows.fatal), choose, blows)
        kills.append(Kill(replace(_random_fault(point, choose), once=True), blow))
    roles = blows.roles
    while sum(kill.count() for kill in kills) < count:
        kills.append(Kill(strike=_random_strike(roles[len(kills) % len(roles)], choose, blows)))
    choose.shuffle(kills)
    return kills


def _random_fault(point: str, choose: random.Random) -> Fault:
    # A worker that dies every time makes Spark give the run up; one that dies once is retried.
    once = point not in WORKER_POINTS or choose.random() < 0.6
    return Fault(point, choose.randint(1, VISITS.get(point, OTHER_VISITS)), once)


def _random_strike(role: str, choose: random.Random, blows: Blows) -> Strike:
    if choose.random() < 0.3:  # at any moment, the start of the engine included
        return Strike(role, 0, choose.uniform(0, blows.within))
    return Strike(role, choose.randint(1, 4), choose.uniform(0, 1))


def run_campaign(
    make: Callable[[Path], Launch],
    place: Path,
    reference: Output,
    kills: int,
    seed: int,
    per_lineage: int = 5,
    check: Check = lambda lineage, ended: None,
) -> Campaign:
    """Kill runs of an app at random until `kills` have hit; every lineage must end with the reference's output.

    `make` gives the launch of a lineage, with checkpoint and output below the folder it is handed (which is removed
    afterwards); `check` may look further.
    """
    choose = random.Random(seed)
    blows = _blows(make(place / "lineage-1"))
    waiting, landed, missed, lineages = random_kills(kills, choose, blows), 0, 0, 0
    log = [f"seed {seed}"]
    while waiting or landed < kills:
        # Of two at once, one may have come in their place.
        waiting = waiting or random_kills(kills - landed, choose, blows)
        lineages += 1
        folder = place / f"lineage-{lineages}"
        lineage = Lineage(make(folder), folder / "logs", [f"seed {seed}, lineage {lineages}"])
        try:
            ended, hits, late = _one_lineage(lineage, waiting, per_lineage, choose)
            _check_ended(lineage, ended, reference)
            check(lineage, ended)
        finally:
            lineage.clean_up()
        shutil.rmtree(folder)
        log += lineage.log
        landed, missed = landed + hits, missed + late
        if missed > kills + len(POINTS):
            raise AssertionError("most kills come too late: the app is too short\n" + "\n".join(log))
    return Campaign(seed, landed, missed, lineages, tuple(log))


def _blows(launch: Launch) -> Blows:
    return WITH_SPARK if launch.has_spark else WITHOUT_SPARK


def _one_lineage(lineage: Lineage, waiting: list[Kill], most: int, choose: random.Random) -> tuple[Ended, int, int]:
    """Kill and restart until a run ends well; returns its end, the kills that hit and those that missed."""
    landed = missed = 0
    while waiting and landed < most:
        kill = waiting.pop(0)
        ended, hit = lineage.disturb(kill, choose)
        if hit:
            landed += kill.count()
        else:
            missed += 1
            waiting.append(kill.sooner(choose, _blows(lineage.launch)))
        if ended.code == 0:
            return ended, landed, missed
    ended, _ = lineage.disturb(Kill(), choose)
    return ended, landed, missed


def _check_ended(lineage: Lineage, ended: Ended, reference: Output) -> None:
    story = "\n".join(lineage.log)
    require(ended.code == 0, f"{story}\n{ended.messages[-3000:]}")
    assert ended.summary is not None
    assert_same_output(lineage.launch.output, reference, story)
    assert_account_closes(ended.summary)
    survivors = [process for running in lineage.runs for process in await_orphans(running)]
    require(not survivors, f"{story}\nstill alive: {survivors}")
