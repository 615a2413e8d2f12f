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


def test_a_peer_that_is_not_installed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details, "interpreter", lambda package: None)
    report = details.run(work=tmp_path, rows=100, quick=True, engines=["polars"])
    assert {(line["note"], line["seconds"]) for line in report["results"]} == {
        ("not installed: make bench-peers", None)
    }


def test_polars_takes_all_of_it(tmp_path: Path) -> None:
    if details.interpreter("polars") is None:
        pytest.skip("Polars is not installed: make bench-peers")
    report = details.run(work=tmp_path, rows=2_000, quick=True, engines=["polars"])
    assert not any(line["note"] for line in report["results"])
    assert all(line["seconds"] > 0 for line in report["results"])


def test_an_engine_that_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown engine 'duck'"):
        details.run(work=tmp_path, rows=100, quick=True, engines=["duck"])
