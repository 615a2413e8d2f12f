"""The benchmark's own arithmetic: digests, warm parts, ratios, and what is said about engines that are not there."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from penstock.bench import command, data, machine, memory, multiquery, peers, table
from penstock.bench.digest import Digest, digest, digest_batches
from penstock.bench.engines import penstock as penstock_engine
from penstock.bench.engines.spark_streaming import Batch, warm_part
from penstock.bench.job import MARK, Answer, Job, parse_answer
from penstock.errors import ConfigError


def test_digest_knows_rows_not_order() -> None:
    rng = np.random.default_rng(1)
    columns = [pa.array(rng.integers(0, 2**32, 1000), pa.uint32()), pa.array(rng.integers(-5, 5, 1000), pa.int64())]
    order = pa.array(rng.permutation(1000))
    whole = digest(columns)
    assert whole == digest([column.take(order) for column in columns])
    assert whole == digest([c[:300] for c in columns]) + digest([c[300:] for c in columns])
    assert whole != digest(columns[::-1])
    assert whole != digest([c[1:] for c in columns])
    assert str(Digest(3, 255)) == "3:00000000000000ff"


def test_digest_knows_values_not_types() -> None:
    numbers = [0, 1, 167772161, 2**32 - 1]
    quads = ["0.0.0.0", "0.0.0.1", "10.0.0.1", "255.255.255.255"]
    expected = digest([pa.array(numbers, pa.int64())])
    for column in (pa.array(numbers, pa.uint32()), pa.array(quads), pa.array(quads).dictionary_encode()):
        assert digest([column]) == expected
    assert digest([pa.array([5000], pa.timestamp("us", "UTC"))]) == digest([pa.array([5000])])
    assert digest([pa.array([5], pa.timestamp("ms"))]) == digest([pa.array([5000])])
    batch = pa.record_batch({"y": [1], "x": [2]})
    assert digest_batches([batch, batch], ["x"]) == digest([pa.array([2, 2])])
    with pytest.raises(ValueError, match="NULL"):
        digest([pa.array([1, None])])


def test_warm_part_of_streams_shares_time_among_running_batches() -> None:
    alone = [[Batch(0, 10, 100), Batch(10, 14, 100), Batch(14, 15, 1), Batch(15, 16, 0)]]
    assert warm_part(alone) == (6, 101)
    in_step = [[Batch(0, 10, 100), Batch(10, 14, 100)], [Batch(0, 10, 100), Batch(10, 14, 100)]]
    assert warm_part(in_step) == (4, 100)
    staggered = [[Batch(0, 10, 100), Batch(10, 12, 100)], [Batch(0, 12, 100), Batch(12, 14, 100)]]
    assert warm_part(staggered) == (1 + 2, 100)


def test_warm_part_of_penstock() -> None:
    summary = {"seconds": {"per_batch": [5.0, 1.0, 2.0]}, "batches": [{"rows": 10}, {"rows": 20}, {"rows": 30}]}
    assert penstock_engine.warm_part(summary) == (3.0, 50, "")
    once = {"seconds": {"per_batch": [5.0]}, "batches": [{"rows": 10}]}
    assert penstock_engine.warm_part(once) == (5.0, 10, "one micro-batch only, the cold one")


def test_answer_is_the_last_marked_line() -> None:
    answer = '{"version": "1", "seconds": 2, "rows": 3, "seconds_cold": 4, "digests": ["a"], "note": "", "extra": {}}'
    assert parse_answer(f"noise\n{MARK}{answer}\nmore") == Answer("1", 2, 3, 4, ("a",))
    assert parse_answer("noise") is None


def test_machine() -> None:
    told = machine.describe()
    assert set(told) == {"cpu", "cores", "memory", "l2", "python", "system"}
    assert int(told["cores"]) >= 1


def test_pairs() -> None:
    assert len(data.PAIRS) == len(set(data.PAIRS)) == 78
    assert data.PAIRS[0] == ("src", "dst")


def test_engines_import_without_spark_and_numba() -> None:
    modules = "arrow duckdb polars penstock spark_streaming spark_grouping_sets"
    code = "import sys, importlib\nfor n in ('pyspark', 'numba', 'sqlglot'): sys.modules[n] = None\n"
    code += f"for n in '{modules}'.split(): importlib.import_module('penstock.bench.engines.' + n)"
    subprocess.run([sys.executable, "-c", code], check=True)


def fake_run(seconds: dict[str, float]) -> Any:
    def run_engine(module: str, package: str, job: Job, timeout: float) -> Answer | str:
        if module == "arrow":
            return Answer("26", 1, job.rows, 1, ("right",) * len(job.queries))
        if module not in seconds:
            return peers.NOT_INSTALLED
        digests = ("wrong" if module == "polars" else "right",) * len(job.queries)
        return Answer("1.0", seconds[module], job.rows, 9.0, digests)

    return run_engine


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiquery, "run_engine", fake_run({"penstock": 2.0, "polars": 1.0, "spark_streaming": 3.0}))
    monkeypatch.setattr(multiquery.memory, "growth", lambda *_: {"note": "not measured"})
    monkeypatch.setattr(multiquery, "QUICK_PREFIX", 1000)
    told: list[str] = []
    report = multiquery.run(work=tmp_path, rows=5000, quick=True, progress=told.append)
    lines = {line["engine"]: line for line in report["results"]}
    assert report["name"] == "multiquery"
    assert report["rows"] == 5000
    assert [line["work"] for line in report["results"]] == ["12 queries"] * 7
    assert lines["penstock"]["ratio_to_penstock"] == 1
    assert lines["penstock"]["same_answer"]
    assert lines["polars"]["ratio_to_penstock"] == 0.5
    assert not lines["polars"]["same_answer"]
    assert lines["spark_streaming"]["rows"] == 1000
    assert lines["spark_streaming"]["ratio_to_penstock"] == pytest.approx(3 / 1000 / (2 / 5000))
    assert lines["duckdb"]["note"] == "not installed: make bench-peers"
    assert lines["duckdb"]["ratio_to_penstock"] is None
    assert any("generating 5,000 records" in text for text in told)
    out = io.StringIO()
    table.show(report, Console(file=out, width=80))
    for text in ("7.50x", "0.50x", "DIFFERS", "same", "not installed", "not measured"):
        assert text in out.getvalue()


def test_memory_growth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_engine(module: str, package: str, job: Job, timeout: float) -> Answer:
        assert job.batch_rows == 10
        peak = {"lfta_peak_bytes": 150 + job.rows // 100, "merge_peak_bytes": 200, "baseline_bytes": 100}
        return Answer("1", 1, job.rows, 1, extra={"memory": peak})

    monkeypatch.setattr(memory, "run_engine", run_engine)
    found = memory.growth(tmp_path, 100, 1.0, lambda text: None)
    assert [run["rows"] for run in found["runs"]] == [100, 1000]
    assert found["growth"] == {"lfta_peak_bytes": round(60 / 51, 3), "merge_peak_bytes": 1.0}
    monkeypatch.setattr(memory, "run_engine", lambda *_: "failed: no Java")
    assert memory.growth(tmp_path, 100, 1.0, lambda text: None) == {"note": "failed: no Java"}


def test_unknown_engine(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown engine 'oracle'\n.*polars"):
        multiquery.run(work=tmp_path, engines=["oracle"])


def test_command_runs_benchmarks_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiquery, "run_engine", fake_run({"duckdb": 2.0}))
    out = io.StringIO()
    console = Console(file=out, width=160)
    (report,) = command.run_benchmarks(["multiquery"], 1000, True, ["duckdb"], None, console)
    assert report["results"][0]["same_answer"]
    assert "12 queries" in out.getvalue()
    with pytest.raises(ConfigError, match=r"unknown benchmark 'speed'\n.*multiquery"):
        next(command.run_benchmarks(["speed"], 1000, True, None, tmp_path, console))
    with pytest.raises(ConfigError, match="needs records"):
        next(command.run_benchmarks(["multiquery"], 0, True, None, tmp_path, console))


def test_part_files(tmp_path: Path) -> None:
    file = data.flow_file(tmp_path, 2500, 10.0, lambda text: None)
    folder = data.parts(file, 2000, 900)
    assert folder == data.parts(file, 2000, 900)
    tables = [pa.parquet.read_table(path) for path in sorted(folder.iterdir())]
    assert [t.num_rows for t in tables] == [900, 900, 200, 1]
    assert pa.concat_tables(tables[:3]).equals(pa.parquet.read_table(file).slice(0, 2000))
    assert pa.parquet.read_table(data.prefix(file, 2000)).num_rows == 2000
    assert (tables[3]["ts"][0].as_py() - tables[2]["ts"][0].as_py()).days == 1


@pytest.mark.parametrize("name", ["duckdb", "duckdb_grouping_sets", "polars"])
def test_peers_agree(tmp_path: Path, name: str) -> None:
    contender = next(c for c in multiquery.CONTENDERS if c.name == name)
    if peers.interpreter(contender.package) is None:
        pytest.skip(peers.NOT_INSTALLED)
    report = multiquery.run(work=tmp_path, rows=20_000, quick=True, engines=[name])
    (line,) = report["results"]
    assert line["same_answer"], line["note"]
    assert line["seconds"] > 0
    assert line["ratio_to_penstock"] is None


def test_failing_and_slow_engines(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "none.parquet"), 1, data.PAIRS[:1], str(tmp_path), 1, 0.0)
    failed = peers.run_engine("arrow", "", job, 60)
    assert isinstance(failed, str)
    assert failed.startswith("failed: FileNotFoundError")
    assert peers.run_engine("arrow", "", job, 0.01) == "stopped after 0 s"
    assert peers.run_engine("duckdb", "no_such_package", job, 60) == peers.NOT_INSTALLED
    assert list(tmp_path.iterdir()) == []
