"""A process that sleeps ten milliseconds at a time, and notes when it was woken late: then the machine had no time for
anybody, and a promise that was broken then says nothing of penstock.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SLEEPER = """
import sys, time
before = time.time()
while True:
    time.sleep(0.01)
    now = time.time()
    if now - before > 0.06:
        print(before, now, file=sys.stdout, flush=True)
    before = now
"""


@dataclass(frozen=True)
class Stall:
    """From when to when, in seconds since 1970."""

    start: float
    stop: float


@dataclass
class Stalls:
    """Those of the time of watching; there once that is over."""

    found: list[Stall] = field(default_factory=list)


@contextmanager
def watching(place: Path) -> Iterator[Stalls]:
    stalls = Stalls()
    with place.open("w", encoding="ascii") as log:
        sleeper = subprocess.Popen([sys.executable, "-S", "-c", SLEEPER], stdout=log)
        try:
            yield stalls
        finally:
            sleeper.kill()
            sleeper.wait()
    stalls.found += [Stall(*map(float, line.split())) for line in place.read_text("ascii").splitlines()]


def stalled(stalls: Sequence[Stall], start: float, stop: float) -> float:
    """The longest that reaches into a span of time, in seconds."""
    return max((one.stop - one.start for one in stalls if one.start < stop and one.stop > start), default=0.0)
