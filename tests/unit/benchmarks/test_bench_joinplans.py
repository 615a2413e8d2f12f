"""The benchmark of plans of joins: every plan runs as asked for, figures are complete. What is fastest is not said."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.comparisons import joinplans
from penstock.errors import ConfigError


def test_all_plans_of_a_case(tmp_path: Path) -> None:
    report = joinplans.run(work=tmp_path, rows=3_000, streams=["first"], repeat=1)
    lines = {line["engine"]: line for line in report["results"]}
    assert set(lines) == {*joinplans.PLANS, joinplans.AUTO}
    for name, line in lines.items():
        assert name in (joinplans.AUTO, line["chosen"])
        assert line["ns_a_record"] > 0
        assert line["regret"] > 0
        assert line["should_be"] == "EAP10"
    assert lines["EAP10"]["state_bytes"] < lines["LAP"]["state_bytes"]
    assert not list(tmp_path.iterdir())


def test_unknown_data(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown data 'few'"):
        joinplans.run(work=tmp_path, streams=["few"])
