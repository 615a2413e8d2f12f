"""Random apps with the engine's own plans: any chooser, allocator, memory and peak load, planned anew after any batch.

Everything equals the oracle, whatever the plans. The planner is made restless: it takes up whatever other plan it
finds, so that plans change far more often than they would pay.
"""

from __future__ import annotations

import itertools
import os
import random
from math import inf
from pathlib import Path

import pytest
from test_random_runs import check

from penstock.errors import ConfigError
from penstock.runtime.planning import replan as planners
from penstock.sharing.options import ALLOCATIONS, AUTO, EACH, OFF, STORED, TABLES, TREE, Planning
from penstock.state import versions
from penstock.testing.apps.generators import random_case
from support.in_unions import random_unions

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
QUICK, SLOW = 14, 400
MEMORY = (4 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
MOST_MEMORY = 64 << 20
PEAKS = (None, None, None, 2e3, 1e5)


def random_planning(seed: int) -> Planning:
    rng, case = random.Random(seed), random_case(seed)
    # Large tables for chunks of a few tuples, or an exhaustive search for many queries, would test patience.
    roomy, few = case.settings.chunk_rows >= 999, len(case.queries) <= 8
    plan = rng.choice((AUTO, "gc", "gp", TREE, TREE, "epes" if few else "gc"))
    alloc = rng.choice([alloc for alloc in ALLOCATIONS if few or alloc != "es"])
    memory = rng.choice((*MEMORY, MOST_MEMORY) if roomy else MEMORY[:-2])
    replan, peak, tables = rng.choice((AUTO, AUTO, AUTO, OFF)), rng.choice(PEAKS), rng.choice(TABLES)
    return Planning(plan, alloc, memory, replan, peak, tables, stored=rng.choice((EACH, EACH, *STORED)))


def restless(patch: pytest.MonkeyPatch) -> None:
    """Every look takes place, every other plan is taken up."""
    patch.setattr(planners, "DRIFT", 1.0)
    patch.setattr(planners, "STRONG", 1.0)
    patch.setattr(planners, "LEAST_TUPLES", 0)
    patch.setattr(planners, "GAIN", inf)
    patch.setattr(planners, "SWITCH", -inf)


def unsettled(patch: pytest.MonkeyPatch, seed: int) -> None:
    """And what is stored as one is any of what may be, something else in every batch."""
    rng = random.Random(seed)
    patch.setattr(planners, "chosen_unions", lambda kept, *known: random_unions(kept, rng))


def run(seed: int, folder: Path, patch: pytest.MonkeyPatch, alike: bool = False) -> tuple[int, int]:
    """Returns the number of versions, and of tables in the last."""
    planning = random_planning(seed)
    try:
        engine = check(seed, folder, patch, planning, alike)
    except ConfigError:
        assert planning.plan == "epes", seed  # too many candidates: told before anything runs
        engine = check(seed, folder / "gc", patch, Planning("gc", planning.alloc, planning.memory), alike)
    kept = sorted(int(path.stem) for path in (engine.checkpoint / versions.FOLDER).iterdir())
    assert len(kept) <= 3, f"seed {seed}: versions {kept}"
    last = engine.held.version
    return last.number, sum(len(plan.tables) for plan in last.plans.values())


def sharing() -> list[int]:
    """Seeds of apps that have something to share, and not too much for a quick test."""
    found = (seed for seed in itertools.count(900) if 2 <= len(random_case(seed).queries) <= 14)
    return list(itertools.islice(found, QUICK))


@pytest.mark.parametrize("part", range(2))
def test_plans_change_no_result(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restless(monkeypatch)
    found = [run(seed, tmp_path / str(seed), monkeypatch) for seed in sharing()[part::2]]
    assert sum(changes for changes, _ in found) >= 2, found
    assert sum(tables for _, tables in found) >= 2, found


@pytest.mark.parametrize("part", range(2))
def test_what_is_stored_changes_no_result(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restless(monkeypatch)
    found, changes = versions.restored, list[int]()
    monkeypatch.setattr(planners, "restored", lambda last, *about: changes.append(1) or found(last, *about))
    for seed in sharing()[part::2]:
        unsettled(monkeypatch, seed)
        run(seed, tmp_path / str(seed), monkeypatch, alike=True)
    assert len(changes) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, SLOW, 20))
def test_many_ways_to_store_change_no_result(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restless(monkeypatch)
    for seed in range(SEED + start, SEED + start + 20):
        unsettled(monkeypatch, seed)
        run(seed, tmp_path / str(seed), monkeypatch, alike=True)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, SLOW, 20))
def test_many_plans_change_no_result(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restless(monkeypatch)
    for seed in range(SEED + start, SEED + start + 20):
        run(seed, tmp_path / str(seed), monkeypatch)
