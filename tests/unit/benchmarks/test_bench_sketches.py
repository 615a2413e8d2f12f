"""The benchmark `sketches` on few records; the peer is skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.comparisons import sketches


def test_penstock_beside_exact_answers(tmp_path: Path) -> None:
    report = sketches.run(work=tmp_path, rows=5_000, quick=True)
    mine = {line["work"]: line for line in report["results"] if line["engine"] == "penstock"}
    assert mine.keys() == {"distinct", "percentile", "frequent"}
    assert mine["distinct"]["mean_error"] < 0.02
    assert mine["percentile"]["greatest_error"] <= 0.01
    assert mine["frequent"]["missing"] == 0
    assert all(line["bytes_per_group"] > 0 for line in mine.values())
