"""The benchmark `scaling`, and where penstock's time goes: one figure at a time grows, and all time has a name."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.comparisons import parts, scaling
from benchmarks.data import files as data
from benchmarks.engines import penstock as penstock_engine
from benchmarks.engines import penstock_parts
from benchmarks.measure import jobs, table
from benchmarks.measure.blocks import Blocks, watched
from benchmarks.measure.job import DISCARD, PARQUET, Answer, EngineJob
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
    report = scaling.run(work=tmp_path, rows=1000, queries=[1, 20, 78], engines=["auto"], streams=["packets"])
    lines = report["results"]
    assert [(line["axis"], line["queries"], line["times"], line["cores"]) for line in lines] == [
        ("queries", 1, 1, 2), ("queries", 20, 1, 2), ("queries", 78, 1, 2),
        ("data", 20, 1, 2), ("data", 20, 3, 2), ("data", 20, 10, 2),
        ("cores", 20, 1, 1), ("cores", 20, 1, 2), ("cores", 78, 1, 1), ("cores", 78, 1, 2),
    ]  # fmt: skip
    assert [line["ratio_to_penstock"] for line in lines] == [1, 20, 78, 1, 1, 1, 1, 0.5, 1, 0.5]
    assert [line["rows"] for line in lines if line["axis"] == "data"] == [1000, 3000, 10_000]
    assert lines[1]["cpu_us_per_record"] == 20
    assert lines[1]["tasks_us_per_record"] == pytest.approx(2)
    assert lines[1]["merge_us_per_record"] == pytest.approx(0.04)
    out = io.StringIO()
    table.show(report, Console(file=out, width=80))
    for text in ("more queries: packets, 1,000 records, 2 cores", "10,000 records", "1 core ", "78.00x", "0.50x"):
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


def test_streams_and_masters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the engine's process: which file, on which master."""
    asked: list[tuple[str, str]] = []

    def noted(module: str, package: str, job: EngineJob, timeout: float) -> Answer | str:
        asked.append((Path(job.file).name.partition("-")[0], job.mode))
        return fake_run(module, package, job, timeout)

    monkeypatch.setattr(scaling, "run_engine", noted)
    monkeypatch.setattr(scaling.machine, "cores", lambda: 1)
    report = scaling.run(work=tmp_path, rows=1000, queries=[1])
    every = [(stream, mode) for stream in ("flows", "packets") for mode in ("auto", "auto process")]
    assert list(dict.fromkeys(asked)) == every
    assert list(dict.fromkeys((line["data"], line["plan"]) for line in report["results"])) == [
        (stream, mode.replace(" ", "/")) for stream, mode in every
    ]
    assert all(line["ratio_to_penstock"] == 1 for line in report["results"])


def test_what_is_asked_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown engine 'auto/thread'\n.*/process"):
        scaling.run(work=tmp_path, engines=["auto/thread"])
    with pytest.raises(ConfigError, match=r"unknown data 'zeek'\n.*flows, packets"):
        scaling.run(work=tmp_path, streams=["zeek"])
    with pytest.raises(ConfigError, match="no 79 queries"):
        scaling.run(work=tmp_path, queries=[1, 79])
    with pytest.raises(ConfigError, match="unknown plan 'magic'"):
        scaling.run(work=tmp_path, engines=["magic"])


class Steps:
    """A clock that goes as far as it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> float:
        self.now += seconds
        return seconds


class Engine:
    """Works for as long as it says, by a clock that tests read; one function calls another, one gives items."""

    clock = Steps()

    def outer(self, seconds: float) -> float:
        Engine.clock.work(seconds)
        return self.inner(seconds / 2) + seconds

    def inner(self, seconds: float) -> float:
        return Engine.clock.work(seconds)

    def items(self, count: int) -> Iterator[int]:
        for number in range(count):
            Engine.clock.work(1)
            yield number
        Engine.clock.work(0.5)

    def fails(self) -> None:
        Engine.clock.work(3)
        raise ValueError("no")


PLACES = {f"{__name__}:Engine.{name}": name for name in ("outer", "inner", "items", "fails")}


def test_time_belongs_to_the_innermost_block_and_adds_up() -> None:
    engine, before = Engine(), vars(Engine).copy()
    blocks, began = Blocks(Engine.clock), Engine.clock.now
    with watched(blocks, PLACES), blocks.block("rest"):
        assert engine.outer(8) == 12
        Engine.clock.work(2)
        for _ in engine.items(3):
            Engine.clock.work(10)  # of whoever takes them
        with pytest.raises(ValueError, match="no"):
            engine.fails()
    assert blocks.seconds == {"rest": 32, "outer": 8, "inner": 4, "items": 3.5, "fails": 3}
    assert blocks.whole == Engine.clock.now - began
    Engine.clock.work(5)  # outside of all blocks
    assert blocks.whole == 50.5
    assert vars(Engine).copy() == before


def test_places_that_are_not_there_are_said() -> None:
    before = vars(Engine).copy()
    with pytest.raises(AttributeError, match="gone"), watched(Blocks(), PLACES | {f"{__name__}:Engine.gone": "gone"}):
        pass
    assert vars(Engine).copy() == before


def test_parts_add_up_to_the_blocks() -> None:
    """What the forest counts by a clock of its own is fitted into what its functions took."""
    seconds = {"decode": 1.0, "take": 10.0, "task": 2.0, "end": 3.0, "close": 4.0, "merge": 5.0, "segment": 6.0}
    parts = penstock_parts._by_part(seconds, 4.0, 1.0)
    assert (parts["tables"], parts["leaves"], parts["other"]) == (4, 1, 7)
    assert (parts["segment"], parts["merge"], parts["sink"]) == (9, 9, 0)
    assert sum(parts.values()) == sum(seconds.values())
    more = penstock_parts._by_part(seconds, 16.0, 4.0)
    assert (more["tables"], more["leaves"], more["other"]) == (8, 2, 2)
    assert list(more) == list(penstock_parts.PARTS)


@pytest.mark.parametrize("sink", [PARQUET, DISCARD])
def test_all_parts_of_tasks_are_met(tmp_path: Path, sink: str) -> None:
    """The engine's functions still have the names by which its time is told apart."""
    given = data.flows(tmp_path, 20_000, lambda text: None)
    job = replace(jobs.job_of(given, 12, tmp_path), mode="gc", sink=sink, batch_rows=8_000)
    seconds, told = penstock_parts._once(job, True)
    assert list(seconds) == [
        "decode", "ingest", "layout", "pack", "tables", "leaves", "other", "flush", "segment",
        "merge", "roll up", "finish", "sink",
    ]  # fmt: skip
    silent = ("leaves", "other", "roll up")  # few tuples may all stay in tables until the flush
    assert [part for part, spent in seconds.items() if spent <= 0 and part not in silent] == []
    assert told["records"] == 20_000
    assert told["partial_groups"] >= told["groups"] > 0
    shown = {part["part"]: part for part in penstock_parts._shown(seconds, told)}
    assert shown["sink"]["ns_per_group"] == pytest.approx(1e9 * seconds["sink"] / told["groups"], rel=0.01, abs=0.06)
    assert shown["leaves"]["ns_per_group"] is None
    assert not (tmp_path / "parts").exists()
    plain, again = penstock_parts._once(job, False)
    assert list(plain) == ["task", "decode", "end", "close"]
    assert again == told


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
    watch = penstock_engine.Watch([1.0, 2.0, 3.0], [0, 0, 0], [7, 1000, 3000], [9, 4000, 6000])
    told = penstock_engine.time_of(summary, watch)
    assert told["first_batch_seconds"] == 4
    assert told["tasks_ns_per_record"] == 1e6
    assert told["merge_ns_per_record"] == 625_000
    assert told["between_ns_per_record"] == 375_000
    assert (told["tables_cpu_ns_per_record"], told["leaves_cpu_ns_per_record"]) == (2, 5)
    assert told["results_per_record"] == 0.25
