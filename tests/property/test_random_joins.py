"""Random apps of joins against their oracle, which shares nothing with the engine, its resolver included.

Rows, accounts by alias and by stream, and the windows must be equal, whatever the plans, the cuts between batches, what
is stored early or late, the number of tasks, compaction, and batches that are done twice. Every failure names its seed:
`random_join_case(seed)` brings the app back.  PENSTOCK_SEED moves the slow campaigns.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from join_runs import Ran, assert_as_expected, run_app, run_in_process

from penstock.errors import PenstockError
from penstock.runtime.batch import compaction
from penstock.runtime.planning.replan import Planner
from penstock.sharing.joins.asked import AUTO, EARLY, LATE
from penstock.sharing.options import Planning
from penstock.testing.apps.random_joins import JoinCase, random_join_case
from support.amounts import quick_and

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
QUICK, QUICK_CHUNK = 16, 8
MANY, CHUNK = 400, 20
ON_SPARK, SPARK_CHUNK = 60, 5
MEMORY = (4 << 10, 64 << 10, 1 << 20)


def check(seed: int, folder: Path, run: Callable[[JoinCase, Path], Ran]) -> None:
    case = random_join_case(seed)
    context = f"seed {seed}: {case.settings}, {case.rows}\n{case.text()}"
    try:
        ran = run(case, folder)
    except PenstockError as error:
        error.add_note(context)
        raise
    assert_as_expected(ran, case, context)
    shutil.rmtree(folder)


def in_process(seed: int, patch: pytest.MonkeyPatch) -> Callable[[JoinCase, Path], Ran]:
    """Random plans that change between batches, those of joins among them, or the planner's; some batches are done
    twice."""
    rng = random.Random(seed)
    patch.setattr(compaction, "MOST", rng.choice([1, 2, 4, 12]))
    planned, joins = rng.random() < 0.4, rng.choice((AUTO, EARLY, LATE))
    plan = Planning(rng.choice(("auto", "gc", "tree", "none")), memory=rng.choice(MEMORY), joins=joins)
    planner = Planner(plan) if planned else None
    stumbling = rng.random() < 0.15
    return lambda case, folder: run_in_process(case, folder, patch, planner, stumbling)


def check_all(first: int, count: int, one: Callable[[int], None]) -> None:
    """All seeds, however many fail."""
    failures: list[Exception] = []
    for seed in range(first, first + count):
        try:
            one(seed)
        except Exception as error:
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {count} seeds failed", failures)


@pytest.mark.parametrize("first", range(1, QUICK, QUICK_CHUNK))
def test_joins_match_the_oracle(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + QUICK_CHUNK):
        check(seed, tmp_path / str(seed), in_process(seed, monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEED, SEED + MANY, CHUNK))
def test_many_joins_match_the_oracle(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_all(first, CHUNK, lambda seed: check(seed, tmp_path / str(seed), in_process(seed, monkeypatch)))


# -- by the public way


def planning(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    plan, joins = rng.choice(["none", "auto", "gc"]), rng.choice([AUTO, EARLY, LATE])
    return {"plan": plan, "memory": rng.choice(MEMORY), "joins": joins}


@pytest.mark.parametrize("seed", quick_and([2], range(SEED, SEED + 40)))
def test_joins_with_worker_processes_match_the_oracle(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path / "run", lambda case, folder: run_app(None, case, folder, **planning(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEED, SEED + ON_SPARK, SPARK_CHUNK))
def test_joins_on_spark_match_the_oracle(spark: SparkSession, first: int, tmp_path: Path) -> None:
    def one(seed: int) -> None:
        check(seed, tmp_path / str(seed), lambda case, folder: run_app(spark, case, folder, **planning(seed)))

    check_all(first, SPARK_CHUNK, one)
