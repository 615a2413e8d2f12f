"""The wall clock, asked in one place so that tests can have it go wrong.

What other machines read is stamped with it (`state.lease`), and live streams begin by it. Results depend on the
stream's times, and durations are measured by clocks that no one sets (`time.monotonic`).

    PENSTOCK_CLOCK_SKEW=-86400              a day behind
    PENSTOCK_CLOCK_SKEW=jump:+3600@20       right at first; an hour ahead from twenty seconds after the start on
    PENSTOCK_CLOCK_SKEW=drift:+0.5          half a second more with every second

Seconds count from the start of each process.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass

NUMBER = r"[+-]?\d+(?:\.\d+)?"
FORM = re.compile(rf"(?P<by>{NUMBER})|jump:(?P<jump>{NUMBER})@(?P<after>{NUMBER})|drift:(?P<drift>{NUMBER})")


@dataclass(frozen=True)
class Skew:
    """How wrong the clock is: by `by` seconds from `after` seconds on, and by `drift` seconds more each second."""

    by: float = 0.0
    after: float = 0.0
    drift: float = 0.0

    def at(self, elapsed: float) -> float:
        return (self.by if elapsed >= self.after else 0.0) + self.drift * elapsed


def parse_skew(text: str) -> Skew:
    """What PENSTOCK_CLOCK_SKEW says.

    >>> parse_skew("-60"), parse_skew("jump:+3600@20").at(19), parse_skew("drift:0.5").at(10)
    (Skew(by=-60.0, after=0.0, drift=0.0), 0.0, 5.0)
    """
    found = FORM.fullmatch(text or "0")
    if found is None:
        raise ValueError(f"PENSTOCK_CLOCK_SKEW={text} is not of the form SECONDS, jump:SECONDS@AFTER or drift:RATE")
    if found["drift"] is not None:
        return Skew(drift=float(found["drift"]))
    return Skew(float(found["by"] or found["jump"]), float(found["after"] or 0))


_skew = parse_skew(os.environ.get("PENSTOCK_CLOCK_SKEW", ""))
_started = time.monotonic()


def now() -> float:
    """Seconds since 1970, as this machine believes."""
    return time.time() + _skew.at(time.monotonic() - _started)


def origin() -> int:
    """Microseconds since 1970 at which the clock that no one sets was at zero, as this machine believes now. Processes
    of a run that are told the same origin agree on every `instant`, whatever becomes of the wall clock."""
    return int(now() * 1_000_000) - time.monotonic_ns() // 1000


def instant(origin: int) -> int:
    """Microseconds since 1970, by the clock that no one sets."""
    return origin + time.monotonic_ns() // 1000
