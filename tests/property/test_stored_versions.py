"""Versions of random apps, with every kind of plan, come back from their files equal."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.app.api import App
from penstock.errors import ConfigError
from penstock.sharing.options import ALLOCATIONS, AUTO, NONE, PLANS, TABLES, Planning
from penstock.state import versions
from penstock.state.versions import Version
from penstock.testing.apps.generators import random_case
from support.plans import random_plans

SEEDS = range(200, 212)


def stored(folder: Path, version: Version) -> Version:
    versions.store(folder, version)
    return versions.load(folder, version.number)


@pytest.mark.parametrize("seed", SEEDS)
def test_versions_come_back_equal(seed: int, tmp_path: Path) -> None:
    rng, case = random.Random(seed), random_case(seed)
    app = App().sql(case.write(tmp_path / "data"))
    kinds = list(dict.fromkeys((NONE, AUTO, PLANS[seed % len(PLANS)])))
    for number, kind in enumerate(kinds):
        planning = Planning(
            kind,
            rng.choice(ALLOCATIONS) if kind in ("gc", "gp") else AUTO,
            rng.choice((None, 4_096, 1 << 20)),
            tables=rng.choice(TABLES) if kind in (AUTO, "tree") else AUTO,
            plan_budget=rng.choice((None, 0.25)),
        )
        try:
            plans = {plan.stream.name: plan for plan in app.plans(**vars(planning))}
        except ConfigError:  # more candidates than EPES takes, tables that the plan does not have
            continue
        outputs = {query.name: f"out/{query.name}" for query in app.query_set().queries}
        version = Version(2 * number, app.query_set(), plans, outputs, frozenset(("old", "ältest")), planning)
        other = Version(2 * number + 1, version.app, random_plans(plans, rng), {}, planning=planning)
        for one in (version, other):
            found = stored(tmp_path, one)
            assert found == one, f"seed {seed}"
            assert hash(found.app) == hash(one.app)
            data = versions.path_of(tmp_path, one.number).read_bytes()
            assert b"penstock." not in data
