"""Fixtures shared by all tests: one Spark session for the whole run, started only where a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from calling import Caller

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from penstock.runtime.session import build_session

    session = build_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def caller(spark: SparkSession) -> Caller:
    return Caller(spark)
