"""What a plan is asked to be like: the options of a run that choose plan, allocation and memory.

`app.cli` takes them from users, `sharing.planner` follows them, and versions of an app keep them.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.sharing.joins.asked import check_word
from penstock.sharing.model.kinds.registry import KINDS

NONE, AUTO, OFF, TREE = "none", "auto", "off", "tree"
PLANS = (AUTO, NONE, "gc", "gp", "epes", TREE)
ALLOCATIONS = (AUTO, "sl", "sr", "pl", "pr", "es", "fptas", "all-or-nothing")
EACH, ONE, ROWS = "each", "one", "rows"  # how relations are stored: by themselves, as one, as one that is appended
STORED = (AUTO, EACH, ONE, ROWS)
TABLES = (AUTO, *(kind.name for kind in KINDS))


@dataclass(frozen=True)
class Planning:
    """`memory` is the budget M of a task's tables before its leaves in bytes (None: the level-2 cache of a core); of a
    plan without sharing, which has none by itself, it is what direct-mapped ones are given. `peak_load` is the most
    nanoseconds that the end of a task may take to flush its tables. `tables` are direct-mapped or evict the least
    recently used (auto: as the paper of the plan has it, or whatever is cheaper). `plan_budget` are seconds of
    processor time that planning again may take, a quarter of what the first plan may where several are compared.
    `joins`: which sides are aggregated before they are stored (`sharing.joins.asked`). `stored`: whether relations are
    stored each by itself, or all that can be as one, as groups or as rows (`sharing.unions`)."""

    plan: str = AUTO
    alloc: str = AUTO
    memory: int | None = None
    replan: str = AUTO
    peak_load: float | None = None
    tables: str = AUTO
    plan_budget: float | None = None
    joins: str = AUTO
    stored: str = AUTO

    def checked(self) -> Planning:
        """The same, if that is possible."""
        _known("plan", self.plan, PLANS)
        _known("alloc", self.alloc, ALLOCATIONS)
        _known("replan", self.replan, (AUTO, OFF))
        _known("tables", self.tables, TABLES)
        _known("stored", self.stored, STORED)
        check_word(self.joins)
        if self.memory is not None and self.memory < 0:
            raise ConfigError("memory cannot be negative")
        if self.peak_load is not None and self.peak_load <= 0:
            raise ConfigError(f"--peak-load must be above 0, not {self.peak_load:g}")
        if self.plan_budget is not None and self.plan_budget <= 0:
            raise ConfigError(f"--plan-budget must be above 0, not {self.plan_budget:g}")
        return self


def _known(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"unknown {option} '{value}'", f"use one of {', '.join(known)}")
