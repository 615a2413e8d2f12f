"""Clocks that are wrong: the wall clock of all Python processes of a run, as `penstock.clock` reads it.

The JVM's clock and those of the system stay right: Spark uses them only to pause between two looks at the sources.
"""

from __future__ import annotations

from penstock.clock import parse_skew
from penstock.testing.faults.runs import Launch


def skewed(launch: Launch, by: float | str) -> Launch:
    """The same run with a clock that is wrong by some seconds, or as `jump` or `drift` say."""
    text = by if isinstance(by, str) else f"{by:+f}"
    parse_skew(text)
    return launch.with_environment(PENSTOCK_CLOCK_SKEW=text)


def jump(seconds: float, after: float) -> str:
    """Right at first, wrong from `after` seconds after the start of each process on."""
    return f"jump:{seconds:+f}@{after:f}"


def drift(rate: float) -> str:
    """Wrong by `rate` seconds more with every second."""
    return f"drift:{rate:+f}"
