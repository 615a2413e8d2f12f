"""What a plan is asked to be like: the options of a run that choose plan, allocation and memory."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ConfigError

NONE, AUTO, OFF = "none", "auto", "off"
PLANS = (AUTO, NONE, "gc", "gp", "epes")
ALLOCATIONS = (AUTO, "sl", "sr", "pl", "pr", "es")
LATER = ("tree", "fptas", "all-or-nothing")


@dataclass(frozen=True)
class Planning:
    """`memory` is the budget M of a task's direct-mapped tables in bytes (None: the level-2 cache of a core); of a plan
    without sharing, which has none by itself, it is what they are given. `peak_load` is the most nanoseconds that the
    end of a task may take to flush its tables."""

    plan: str = AUTO
    alloc: str = AUTO
    memory: int | None = None
    replan: str = AUTO
    peak_load: float | None = None

    def checked(self) -> Planning:
        """The same, if that is possible."""
        _known("plan", self.plan, PLANS)
        _known("alloc", self.alloc, ALLOCATIONS)
        _known("replan", self.replan, (AUTO, OFF))
        if self.memory is not None and self.memory < 0:
            raise ConfigError("memory cannot be negative")
        if self.peak_load is not None and self.peak_load <= 0:
            raise ConfigError(f"--peak-load must be above 0, not {self.peak_load:g}")
        return self


def _known(option: str, value: str, known: tuple[str, ...]) -> None:
    if value in LATER:
        raise ConfigError(f"--{option} {value} is not executable yet", f"use one of {', '.join(known)}")
    if value not in known:
        raise ConfigError(f"unknown {option} '{value}'", f"use one of {', '.join(known)}")
