"""Drive a soak: start the run, sample it, kill a process now and then, start it again, stop it at the end.

    first third: kills │ middle third: left alone, so that a slow leak shows │ last third: kills │ SIGTERM

Driver and JVM are killed in turn, each of which ends the run; a worker's death it must survive. Everything happens on
one checkpoint, with the command line as users run it.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.testing import faults
from penstock.testing.faults import DRIVER, JVM, WORKER, Ended, Launch, Running
from support.soak.queries import app_text
from support.soak.sampling import Recorder, Sample

SAMPLE_SECONDS = 3.0
COLLECT_SECONDS = 20.0  # between two collections of the JVM's heap, after which its live bytes are known
BATCH_ROWS = 131_072
HEAP = "768m"


@dataclass(frozen=True)
class Blow:
    """At this second of the soak, kill a process of this role."""

    at: float
    role: str


@dataclass(frozen=True)
class Driven:
    """What happened: samples, a line for every event, and how the last run ended."""

    launch: Launch
    samples: tuple[Sample, ...]
    story: tuple[str, ...]
    kills: dict[str, int]
    ended: Ended


def blows(seconds: float, seed: int) -> list[Blow]:
    """About one in four minutes, at least four, none in the middle third; in time order."""
    choose = random.Random(seed)
    count = max(4, round(seconds / 240))
    roles = [(DRIVER, JVM, WORKER)[number % 3] for number in range(count)]
    choose.shuffle(roles)
    half = count // 2
    places = [(number + choose.uniform(0.7, 1.0)) / half / 3 for number in range(half)]
    places += [2 / 3 + (number + choose.uniform(0.0, 0.3)) / (count - half) / 3 for number in range(count - half)]
    return [Blow(place * seconds, role) for place, role in zip(sorted(places), roles, strict=True)]


@dataclass
class Driver:
    """One soak on its way."""

    launch: Launch
    logs: Path
    recorder: Recorder
    seed: int
    say: Callable[[str], None]
    phase: int = 0
    struck: bool = False  # something of this run was killed
    started: float = 0.0
    collected: float = 0.0
    story: list[str] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=dict)

    def run(self, seconds: float) -> Driven:
        choose, waiting = random.Random(self.seed), blows(seconds, self.seed)
        running = self._start()
        try:
            while self._elapsed() < seconds:
                until = min(seconds, waiting[0].at if waiting else seconds)
                if not self._watch(running, until):
                    running = self._restart(running)
                if waiting and self._elapsed() >= waiting[0].at:
                    running = self._strike(running, waiting.pop(0), choose)
            ended = self._stop(running)
        finally:
            faults.clean_up(running)
        return Driven(self.launch, tuple(self.recorder.samples), tuple(self.story), self.kills, ended)

    def _elapsed(self) -> float:
        return time.monotonic() - self.recorder.began

    def _note(self, event: str) -> None:
        batches = faults.committed(self.launch.checkpoint)
        self.story.append(f"{self._elapsed():6.0f} s, {batches:6d} batches: {event}")
        self.say(self.story[-1])

    def _start(self) -> Running:
        self.phase += 1
        self.struck = False
        self.started = self.collected = time.monotonic()
        running = faults.start(self.launch, self.logs)
        self._note(f"run {self.phase} started")
        return running

    def _watch(self, running: Running, until: float) -> bool:
        """Sample until then; False if the run has ended before."""
        while self._elapsed() < until:
            now = time.monotonic()
            collect = now - self.collected >= COLLECT_SECONDS
            self.collected = now if collect else self.collected
            self.recorder.take(running, self.phase, now - self.started, collect)
            if running.process.poll() is not None:
                return False
            time.sleep(max(0.0, min(SAMPLE_SECONDS, until - self._elapsed())))
        return True

    def _strike(self, running: Running, blow: Blow, choose: random.Random) -> Running:
        victim = faults.strike(running, faults.Strike(blow.role), choose)
        if victim is None:
            raise AssertionError("\n".join([*self.story, f"no {blow.role} to kill"]))
        self.kills[blow.role] = self.kills.get(blow.role, 0) + 1
        self._note(f"killed {blow.role} {victim.pid}")
        self.struck = True
        return running if blow.role == WORKER else self._restart(running)

    def _restart(self, running: Running) -> Running:
        """After a kill. Workers of tasks are replaced; without that of the source the run ends with a message."""
        ended = faults.wait(running)
        self._note(f"run {self.phase} ended, exit {ended.code}")
        if not self.struck or ended.code == 0:
            raise AssertionError("\n".join([*self.story, "it ended by itself", ended.messages[-3000:]]))
        return self._start()

    def _stop(self, running: Running) -> Ended:
        """As a service manager does."""
        faults.await_batches(running, 1)
        os.kill(running.process.pid, signal.SIGTERM)
        ended = faults.wait(running)
        self._note(f"run {self.phase} stopped, exit {ended.code}")
        return ended


def drive(work: Path, seconds: float, seed: int, say: Callable[[str], None]) -> Driven:
    """A whole soak in the folder `work`."""
    scratch = work / "scratch"
    scratch.mkdir(parents=True)
    app = work / "app.sql"
    app.write_text(app_text(seed))
    launch = Launch(app, work / "checkpoint", work / "out", BATCH_ROWS, ("--until", "stopped"))
    # A heap that is known, and scratch files that can be counted.
    launch = launch.with_environment(SPARK_DRIVER_MEMORY=HEAP, SPARK_LOCAL_DIRS=str(scratch))
    return Driver(launch, work / "logs", Recorder(scratch), seed, say).run(seconds)
