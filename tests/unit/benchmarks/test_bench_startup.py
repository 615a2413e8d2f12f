"""The benchmark `startup` on commands that need no Spark."""

from __future__ import annotations

from pathlib import Path

from benchmarks.comparisons import startup


def test_commands_are_measured_beside_what_they_are_compared_with(tmp_path: Path) -> None:
    report = startup.run(work=tmp_path, rows=100, quick=True, engines=["--help", "no such app"])
    lines = {line["engine"]: line for line in report["results"]}
    assert list(lines) == ["imports", "--help", "no such app"]
    assert all(line["seconds"] > 0 and line["cpu_seconds"] > 0 and not line["note"] for line in lines.values())
    assert lines["--help"]["ratio"] > 0
    assert lines["--help"]["most"] == 0.5
    assert lines["imports"]["ratio"] is None


def test_a_command_that_does_not_exist_is_reported_as_missing(tmp_path: Path) -> None:
    found = startup.Measured()
    command = startup.Command("nonsense", "", ("-m", "penstock", "nonsense"))
    startup.measure(command, tmp_path, found, counted=True)
    assert found.note.startswith("missing")
    assert not found.wall
