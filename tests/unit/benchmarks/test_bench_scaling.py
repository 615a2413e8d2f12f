"""The benchmark `scaling`, and where penstock's time goes: one figure at a time grows, and all time has a name."""

from __future__ import annotations

import io
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.comparisons import parts, scaling
from benchmarks.data import files as data
from benchmarks.engines import penstock as penstock_engine
from benchmarks.engines import penstock_parts
from benchmarks.measure import jobs, table
from benchmarks.measure.job import DISCARD, PARQUET, Answer, EngineJob
from benchmarks.measure.profiled import Profiled
from penstock.errors import ConfigError


def fake_run(module: str, package: str, job: EngineJob, timeout: float) -> Answer | str:
    """A record costs a microsecond a query, on all cores together; its tasks a tenth of that."""
    if module == "penstock_parts":
        told = [{"part": part, "ns_per_record": 50.0 * len(job.queries)} for part in ("leaves", "other")]
        told += [{"part": part, "ns_per_record": 10.0} for part in scaling.MERGING]
        return Answer("1", 1, job.rows, 1, extra={"parts": told})
    if job.threads > 2:
        return "failed: no such machine"
    spent = job.rows * len(job.queries) * 1e-6
    return Answer("1", spent / job.threads, job.rows, 9.0, extra={"memory": {}}, cpu_seconds=spent)


def test_one_figure_grows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "run_engine", fake_run)
    monkeypatch.setattr(scaling.machine, "cores", lambda: 2)
    report = scaling.run(work=tmp_path, rows=1000, queries=[1, 20, 78])
    lines = report["results"]
    assert [(line["axis"], line["queries"], line["times"], line["cores"]) for line in lines] == [
        ("queries", 1, 1, 2), ("queries", 20, 1, 2), ("queries", 78, 1, 2),
        ("data", 20, 1, 2), ("data", 20, 3, 2), ("data", 20, 10, 2),
        ("cores", 20, 1, 1), ("cores", 20, 1, 2),
    ]  # fmt: skip
    assert [line["ratio_to_penstock"] for line in lines] == [1, 20, 78, 1, 1, 1, 1, 0.5]
    assert [line["rows"] for line in lines if line["axis"] == "data"] == [1000, 3000, 10_000]
    assert lines[1]["cpu_us_per_record"] == 20
    assert lines[1]["tasks_us_per_record"] == pytest.approx(2)
    assert lines[1]["merge_us_per_record"] == pytest.approx(0.03)
    out = io.StringIO()
    table.show(report, Console(file=out, width=80))
    for text in ("more queries: 1,000 records, 2 cores", "10,000 records", "1 core ", "78.00x", "0.50x"):
        assert text in out.getvalue()


def test_runs_that_fail_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "run_engine", fake_run)
    monkeypatch.setattr(scaling.machine, "cores", lambda: 64)
    report = scaling.run(work=tmp_path, rows=1000, quick=True, engines=["gc"])
    assert {line["plan"] for line in report["results"]} == {"gc"}
    assert [line["ratio_to_penstock"] for line in report["results"] if line["axis"] == "cores"] == [1, None]
    out = io.StringIO()
    table.show(report, Console(file=out, width=80))
    assert "failed: no such machine" in out.getvalue()


def test_what_is_asked_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no 79 queries"):
        scaling.run(work=tmp_path, queries=[1, 79])
    with pytest.raises(ConfigError, match="unknown plan 'magic'"):
        scaling.run(work=tmp_path, engines=["magic"])


def busy(seconds: float) -> None:
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        pass


def test_functions_are_found_by_module_and_name() -> None:
    profiled = Profiled()
    assert profiled.within("benchmarks.test_bench_scaling", "busy") == 0
    profiled(lambda: busy(0.02))
    profiled(lambda: busy(0.01))
    assert profiled.seconds >= profiled.within("benchmarks.test_bench_scaling", "busy") >= 0.03
    assert profiled.within("benchmarks.test_bench", "busy") == 0
    assert profiled.within("benchmarks.test_bench_scaling", "idle") == 0


@pytest.mark.parametrize("sink", [PARQUET, DISCARD])
def test_all_parts_of_tasks_are_met(tmp_path: Path, sink: str) -> None:
    """The engine's functions still have the names by which its time is told apart."""
    given = data.flows(tmp_path, 20_000, lambda text: None)
    job = replace(jobs.job_of(given, 12, tmp_path), mode="gc", sink=sink, batch_rows=8_000)
    seconds, told = penstock_parts._once(job)
    assert list(seconds) == [
        "decode", "ingest", "layout", "pack", "tables", "leaves", "other", "flush", "segment",
        "merge", "finish", "sink",
    ]  # fmt: skip
    silent = ("leaves", "other")  # few tuples may all stay in tables until the flush
    assert [part for part, spent in seconds.items() if spent <= 0 and part not in silent] == []
    assert told["records"] == 20_000
    assert told["partial_groups"] >= told["groups"] > 0
    shown = {part["part"]: part for part in penstock_parts._shown(seconds, told)}
    assert shown["sink"]["ns_per_group"] == pytest.approx(1e9 * seconds["sink"] / told["groups"], rel=0.01, abs=0.06)
    assert shown["leaves"]["ns_per_group"] is None
    assert not (tmp_path / "parts").exists()


def test_parts_of_data_that_are_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "LOG", tmp_path / "none.parquet")
    monkeypatch.setattr(parts, "run_engine", lambda *_: "failed: no memory")
    monkeypatch.setattr(parts, "MOST_ROWS", 500)
    found = parts.measured(["flows", "zeek"], 12, 1000, tmp_path, lambda text: None)
    assert found == [{"data": "flows", "queries": 12, "note": "failed: no memory"}]
    assert (tmp_path / "flows-1000-0.5-first-500.parquet").exists()


def test_time_of_a_run() -> None:
    seconds = {"startup": 5.0, "planning": 0.5, "per_batch": [4.0, 2.0, 2.0], "tasks": [3.0, 1.0, 1.0]}
    summary = {
        "seconds": {**seconds, "merge": [0.5, 0.5, 0.75]},
        "batches": [{"rows": 1000}] * 3,
        "queries": {"a": {"rows": 500}, "b": {"rows": 250}},
    }
    watch = penstock_engine.Watch([1.0, 2.0, 3.0], [7, 1000, 3000], [9, 4000, 6000])
    told = penstock_engine.time_of(summary, watch)
    assert told["first_batch_seconds"] == 4
    assert told["tasks_ns_per_record"] == 1e6
    assert told["merge_ns_per_record"] == 625_000
    assert told["between_ns_per_record"] == 375_000
    assert (told["tables_cpu_ns_per_record"], told["leaves_cpu_ns_per_record"]) == (2, 5)
    assert told["results_per_record"] == 0.25
