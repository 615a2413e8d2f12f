"""What all tests share: one Spark session for the whole run, started only where a test asks for it, and a machine of
usual costs, in this process and in those that tests start: plans must not depend on where and beside what tests run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.calling import Caller

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    from penstock.runtime import machine
    from penstock.runtime.planning import join_costs
    from penstock.runtime.profile import calibrate
    from penstock.sharing import planner
    from penstock.sharing.joins.cost import USUAL as USUAL_JOINS
    from penstock.sharing.model.unit_costs import USUAL

    cache = tempfile.TemporaryDirectory(prefix="penstock-tests-")
    config.add_cleanup(cache.cleanup)
    os.environ["XDG_CACHE_HOME"] = cache.name
    for path, usual in ((calibrate.kept_at(), USUAL), (join_costs.kept_at(), USUAL_JOINS)):
        assert path is not None
        calibrate.store(path, asdict(usual))
    machine.L2 = Path(cache.name, "unknown")
    planner.BUDGET = inf


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from penstock.runtime.spark.session import build_session

    session = build_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def caller(spark: SparkSession) -> Caller:
    return Caller(spark)
