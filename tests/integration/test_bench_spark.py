"""Engines on Spark give the reference's answers; slow, because each starts a session of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench import multiquery, packets


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark_streaming", "spark_grouping_sets"])
def test_spark_peers_agree(tmp_path: Path, name: str) -> None:
    (line,) = multiquery.run(work=tmp_path, rows=100_000, quick=True, engines=[name])["results"]
    assert line["same_answer"], line["note"]
    assert line["rows_per_second"] > 0


@pytest.mark.slow
def test_packets_by_penstock(tmp_path: Path) -> None:
    engines = ["penstock", "penstock_tasks", "penstock_decode"]
    report = packets.run(work=tmp_path, rows=50_000, quick=True, engines=engines)
    lines = {line["engine"]: line for line in report["results"]}
    assert lines["penstock"]["same_answer"], lines["penstock"]["note"]
    assert lines["penstock"]["cpu_seconds"] > 0
    for name in engines[1:]:
        assert lines[name]["rows"] == 50_000
        assert lines[name]["same_answer"] is None
        assert lines[name]["rows_per_core_second"] > 0
