"""The benchmark `details`, on few records and without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.comparisons import details
from penstock.errors import ConfigError


def test_figures_of_every_piece_of_work(tmp_path: Path) -> None:
    report = details.run(work=tmp_path, rows=2_000, quick=True, engines=["penstock", "duckdb"])
    assert [(line["work"], line["engine"]) for line in report["results"]] == [
        (work, engine) for work in details.WORK for engine in ("penstock", "duckdb")
    ]
    for line in report["results"]:
        assert not line["note"]
        assert line["seconds"] > 0
        assert line["memory"] > 1 << 20


def test_an_engine_that_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown engine 'duck'"):
        details.run(work=tmp_path, rows=100, quick=True, engines=["duck"])
