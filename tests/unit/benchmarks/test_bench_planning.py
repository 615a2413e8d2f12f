"""The benchmark `planning`: every chooser that can plan is timed, and what cannot be planned is said."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.comparisons import planning
from benchmarks.measure import table
from penstock.errors import ConfigError
from penstock.sharing.options import NONE, PLANS


def test_choosers_are_those_of_the_planner() -> None:
    assert [chooser.name for chooser in planning.CHOOSERS] == [name for name in PLANS if name != NONE]
    assert len(planning.KEYS) == len(set(planning.KEYS)) == 78 + 286


def test_all_choosers_are_measured(tmp_path: Path) -> None:
    report = planning.run(work=tmp_path, rows=20_000, quick=True, queries=[6])
    lines = {line["engine"]: line for line in report["results"]}
    assert report["name"] == "planning"
    assert list(lines) == [chooser.name for chooser in planning.CHOOSERS]
    for name in ("auto", "gc", "gp", "tree"):
        line = lines[name]
        assert line["work"] == "6 queries"
        assert min(line["seconds"], line["seconds_again"], line["seconds_replan"]) > 0
        assert line["cost_ns"] > 0
        assert line["plan"]
    assert lines["auto"]["ratio_to_penstock"] == 1
    assert lines["gc"]["ratio_to_penstock"] > 0
    assert lines["epes"]["note"].startswith("refused: ")
    assert lines["epes"]["seconds"] is None
    out = io.StringIO()
    table.show(report, Console(file=out, width=80))
    for text in ("6 queries", "re-plan ms", "epes, 6 queries: refused"):
        assert text in out.getvalue()
    assert list(tmp_path.iterdir()) == []


def test_what_is_asked_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no plan for 1 queries\n.*from 2 to 364"):
        planning.run(work=tmp_path, queries=[1])
    with pytest.raises(ConfigError, match=r"unknown engine 'magic'\n.*tree"):
        planning.run(work=tmp_path, engines=["magic"])


def test_ratios_are_to_what_penstock_does_by_itself() -> None:
    lines = planning.with_ratios([{"engine": "auto", "seconds": 2.0}, {"engine": "gc", "seconds": 1.0}])
    assert [line["ratio_to_penstock"] for line in lines] == [1.0, 0.5]
    alone = planning.with_ratios([{"engine": "gc", "seconds": 1.0}, {"engine": "epes", "seconds": None}])
    assert [line["ratio_to_penstock"] for line in alone] == [None, None]
