"""The benchmark's own arithmetic: digests, warm parts, ratios, and what is said about engines that are not there."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from rich.console import Console

from benchmarks import command
from benchmarks.comparisons import multiquery, peers
from benchmarks.comparisons.contenders import CONTENDERS, Contender
from benchmarks.data import files as data
from benchmarks.engines import penstock as penstock_engine
from benchmarks.engines.monitoring.questions import NAMES
from benchmarks.engines.spark_streaming import Batch, warm_part
from benchmarks.measure import machine, memory, paired, table
from benchmarks.measure.digest import Digest, agrees, counted, digest, digest_batches, digest_files
from benchmarks.measure.job import DISCARD, MARK, NULL_TEXT, PARQUET, SCHEMA, Answer, EngineJob, parse_answer
from benchmarks.measure.keys import finest, key, keys_of, ladder
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


def test_digest_knows_text_and_nulls() -> None:
    texts = ["", "a", "ab", "b", "12345678", "123456789", "fe80::1", "10.0.0.1", None]
    words = [digest([pa.array([text], pa.string())]) for text in texts]
    assert len(set(words)) == len(texts)
    whole = pa.array(texts)
    assert digest([whole]) == sum(words, Digest())  # a text's word does not depend on those beside it
    assert digest([whole.dictionary_encode()]) == digest([whole.cast(pa.large_string())]) == digest([whole])
    assert digest([pa.array(["10.0.0.1"])]) == digest([pa.array([167772161])])
    assert digest([pa.array([1, None])]) != digest([pa.array([1, 0])])
    assert digest([pa.array([None, 1]), pa.array([1, None])]) != digest([pa.array([1, None]), pa.array([1, None])])
    assert digest([pa.array([None, None], pa.string())]) == digest([pa.array([None, None], pa.int64())])


def test_digests_of_files_add_up(tmp_path: Path) -> None:
    tables = [pa.table({"x": [1, 2], "y": ["a", None]}), pa.table({"x": [3], "y": ["c"]})]
    for number, part in enumerate(tables):
        pa.parquet.write_table(part, tmp_path / f"{number}.parquet")
    expected = sum((digest_batches(part.to_batches(), ["y", "x"]) for part in tables), Digest())
    assert digest_files(sorted(tmp_path.iterdir()), ["y", "x"]) == expected


def test_digest_takes_prefixes_for_their_first_bits() -> None:
    prefixes = ["0.0.0.0/8", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "255.255.255.255/32", "10.0.0.1", None]
    numbers = [0, 10, 2561, 655618, 2**32 - 1, 167772161, None]
    assert digest([pa.array(prefixes)]) == digest([pa.array(numbers)])
    assert digest([pa.array(["fe80::/16"])]) != digest([pa.array(["fe80::/32"])])


def test_keys_are_columns_or_their_first_bits() -> None:
    job = EngineJob("f", 1, (("src/8", "proto"), ("src/24",), ("dst/32", "src/8")), "w", 1, 0.0)
    assert job.attributes == ("src_8", "proto", "src_24", "dst_32")
    assert job.columns == ("src", "proto", "dst")
    assert job.names(2) == ("dst_32", "src_8")
    assert [one.text for one in job.keys] == ["src/8", "proto", "src/24", "dst/32"]
    assert [(one.below, one.size) for one in job.keys if one.length] == [(24, 8), (8, 32), (0, 32)]
    assert [one.text for one in finest(job.queries)] == ["proto", "src/24", "dst/32"]
    assert key("src/24").cut(key("src/8")) == 16
    assert not key("proto").feeds(key("proto/8"))


@pytest.mark.parametrize("queries", [data.PREFIXES, data.PAIRS, data.PREFIXES[:4], (("src", "dst"), ("dst", "src"))])
def test_a_ladder_answers_every_query_from_an_earlier_rung(queries: tuple[tuple[str, ...], ...]) -> None:
    rungs = ladder(queries)
    assert sorted(rung.query for rung in rungs if rung.query is not None) == list(range(len(queries)))
    assert rungs[0].parent is None
    for place, rung in enumerate(rungs):
        if rung.query is not None:
            assert {one.text for one in rung.keys} == set(queries[rung.query])
        if rung.parent is not None:
            assert rung.parent < place
            finer = rungs[rung.parent].keys
            assert all(any(one.column == k.column and one.length >= k.length for one in finer) for k in rung.keys)


def test_a_ladder_goes_down_bit_by_bit() -> None:
    rungs = {rung.keys: rung for rung in ladder(data.PREFIXES)}
    every = list(rungs)
    assert len(rungs) == len(data.PREFIXES)
    for keys, finer in (("src/8", "src/16"), ("src/8 dst/8", "src/8 dst/16"), ("src/32", "src/32 dst/8")):
        parent = rungs[keys_of(keys.split())].parent
        assert parent is not None
        assert every[parent] == keys_of(finer.split())


def test_packets_repeat_and_flows_do_not(tmp_path: Path) -> None:
    """Records by flow: what `packets` is there for."""
    five = ["src", "dst", "sport", "dport", "proto"]
    found = {}
    for name in ("flows", "packets", "prefixes"):
        given = data.DATA[name](tmp_path, 65_536, lambda text: None)
        assert isinstance(given, data.Data)
        groups = pa.parquet.read_table(given.file).group_by(five).aggregate([])
        found[name] = given.rows / groups.num_rows
        assert given.window_seconds == (300 if name == "flows" else 60)
    assert found["flows"] < 1.01
    assert 12 < found["packets"] < 30
    assert found["prefixes"] == found["packets"]


def test_answers_agree_by_digest_or_by_count() -> None:
    expected = [str(Digest(3, 255)), str(Digest(30, 1))]
    assert agrees(expected, expected)
    assert agrees([counted(3), counted(30)], expected)
    assert not agrees([counted(3), counted(3)], expected)
    assert not agrees([str(Digest(3, 254)), expected[1]], expected)
    assert not agrees(expected[:1], expected)
    assert agrees([], expected) is None


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
    modules = "arrow duckdb polars clickhouse flink penstock penstock_parts"
    modules += " spark_streaming spark_grouping_sets spark_base_aggregate"
    modules += " monitoring.arrow monitoring.duckdb monitoring.polars monitoring.clickhouse monitoring.spark"
    modules += " joins.arrow joins.duckdb joins.penstock joins.spark"
    code = "import sys, importlib\nfor n in ('pyspark', 'numba', 'sqlglot'): sys.modules[n] = None\n"
    code += f"for n in '{modules}'.split(): importlib.import_module('benchmarks.engines.' + n)"
    subprocess.run([sys.executable, "-c", code], check=True)


def fake_run(seconds: dict[str, float]) -> Any:
    def run_engine(module: str, package: str, job: EngineJob, timeout: float) -> Answer | str:
        if module == "arrow":
            return Answer("26", 1, job.rows, 1, ("right",) * len(job.queries))
        if module not in seconds:
            return peers.NOT_INSTALLED
        digests = ("wrong" if module == "polars" else "right",) * len(job.queries)
        return Answer("1.0", seconds[module], job.rows, 9.0, digests, cpu_seconds=2 * seconds[module])

    return run_engine


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiquery, "run_engine", fake_run({"penstock": 2.0, "polars": 1.0, "spark_streaming": 3.0}))
    monkeypatch.setattr(multiquery.memory, "growth", lambda *_: {"note": "not measured"})
    parts = [{"part": "leaves", "ns_per_record": 700.0, "ns_per_group": None}]
    told = {
        "data": "flows",
        "queries": 12,
        "records": 5,
        "partial_groups": 4,
        "groups": 3,
        "plan": "q0",
        "parts": parts,
    }
    monkeypatch.setattr(multiquery.parts, "measured", lambda *_: [told])
    short = tuple(replace(c, most=12 * 8 * 1000 if c.most else 0) for c in CONTENDERS)
    monkeypatch.setattr(multiquery, "CONTENDERS", short)
    said: list[str] = []
    report = multiquery.run(work=tmp_path, rows=5000, quick=True, progress=said.append)
    lines = {line["engine"]: line for line in report["results"] if line["sink"] == PARQUET}
    assert report["name"] == "multiquery"
    assert report["rows"] == 5000
    assert [line["work"] for line in report["results"] if line["sink"] == DISCARD] == [
        "flows: 12 queries, results discarded"
    ] * 12
    assert set(lines) == {contender.name for contender in CONTENDERS if "flows" in contender.streams}
    assert lines["penstock"]["ratio_to_penstock"] == 1
    assert lines["penstock"]["same_answer"]
    assert lines["polars"]["ratio_to_penstock"] == lines["polars"]["core_ratio_to_penstock"] == 0.5
    assert lines["polars"]["cold_ratio_to_penstock"] == 1
    assert not lines["polars"]["same_answer"]
    assert lines["spark_streaming"]["rows"] == 1000
    assert lines["spark_streaming"]["ratio_to_penstock"] == pytest.approx(3 / 1000 / (2 / 5000))
    assert lines["duckdb"]["note"] == "not installed: make bench-peers"
    assert lines["duckdb"]["ratio_to_penstock"] is None
    assert any("generating 5,000 records" in text for text in said)
    out = io.StringIO()
    table.show(report, Console(file=out, width=80))
    assert "hash ops" not in out.getvalue()
    for text in ("7.50x", "0.50x", "DIFFERS", "same", "not installed", "not measured", "leaves", "700", "3 results"):
        assert text in out.getvalue()


def test_figures_of_a_run() -> None:
    summary = {
        "seconds": {"per_batch": [5.0, 1.0, 3.0]},
        "batches": [{"rows": 100}] * 3,
        "work": {"hash_operations": 900, "naive_hash_operations": 3000},
        "state": {"written": 6000, "compacted": 300, "read": 1200, "results": 600},
    }
    watch = penstock_engine.Watch(results=[100, 200, 900])
    assert penstock_engine.figures_of(summary, watch) == {
        "hash_operations_per_record": 3,
        "naive_hash_operations_per_record": 10,
        "bytes_written_per_record": 21,
        "bytes_read_per_record": 4,
        "result_bytes_per_record": 2,
        "results_per_record": 3,
        "results_per_second": 200,
    }


def test_a_mode_has_plan_and_master() -> None:
    assert penstock_engine.plan_of("auto process ready") == "auto"
    assert penstock_engine.plan_of("none") == "none"
    assert penstock_engine.plan_of("") == "none"


def test_engines_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who begins changes from round to round; the whole run counts, and one that fails does not run again."""
    order: list[str] = []
    used = iter([(2.0, 1.0), (4.0, 2.0), (5.0, 4.0), (2.0, 1.0), (3.0, 1.0), (5.0, 2.0)])

    def run_engine(module: str, package: str, job: EngineJob, timeout: float) -> Answer | str:
        assert job.sink == DISCARD
        order.append(f"{module} {job.mode}".strip())
        if module == "polars":
            return "failed: no memory"
        whole, batches = next(used)
        told = {"cpu_seconds_all": whole, "cpu_seconds_batches": batches}
        return Answer("1", 1.0, 600, 9.0, ("5:",), cpu_seconds=0.1, extra=told)

    monkeypatch.setattr(multiquery, "run_engine", run_engine)
    names = ["penstock", "penstock_unshared", "polars"]
    report = multiquery.run(work=tmp_path, rows=1000, engines=names, streams=["packets"], queries=[12], repeat=3)
    auto, none = "penstock auto ready", "penstock none ready"
    assert order == [auto, none, "polars", none, auto, auto, none]
    first, second, third = report["results"]
    assert (first["cpu_seconds"], second["cpu_seconds"]) == ([2, 2, 3], [4, 5, 5])
    assert (first["ratio"], first["low"], first["high"]) == (1, 1, 1)
    assert second["ratio"] == pytest.approx((0.5 * 0.4 * 0.6) ** (1 / 3), abs=1e-3)
    assert second["low"] < second["ratio"] < second["high"]
    assert second["batches"]["ratio"] == pytest.approx((0.5 * 0.25 * 0.5) ** (1 / 3), abs=1e-3)
    assert second["ratio_to_penstock"] == pytest.approx(1 / second["ratio"], abs=1e-3)
    assert second["same_answer"]
    assert third["note"] == "failed: no memory"
    out = io.StringIO()
    table.show(report, Console(file=out, width=80))
    for text in ("packets: 12 queries", "0.493", "0.397", "failed: no memory", "3 rounds", "same"):
        assert text in out.getvalue()


def test_interval_of_ratios() -> None:
    """Of four ratios by Student's t, worked out by hand: logarithms ±0.1, mean 0, deviation 0.11547."""
    low, high = paired.interval([np.exp(0.1), np.exp(-0.1), np.exp(0.1), np.exp(-0.1)])
    assert np.log(high) == pytest.approx(3.182 * 0.11547 / 2, abs=1e-4)
    assert low == pytest.approx(1 / high)
    assert paired.interval([1.0]) == (0, float("inf"))


def test_contenders_read_a_prefix() -> None:
    slow, fast = Contender("s", "s", most=78 * 500_000, part_rows=200_000), Contender("f", "f")
    assert slow.rows(78, 10_000_000) == 500_000
    assert slow.rows(12, 10_000_000) == 3_250_000
    assert slow.rows(78, 1000) == 1000
    assert slow.shortened().rows(78, 10_000_000) == 62_500
    assert slow.shortened().part_rows == 25_000
    assert fast.rows(78, 10_000_000) == fast.shortened().rows(78, 10_000_000) == 10_000_000


def test_slow_contenders_drop_no_results_of_the_log() -> None:
    slow, fast, one = Contender("s", "s", most=1), Contender("f", "f"), Contender("o", "o", sinks=(PARQUET,))
    assert slow.takes("packets", DISCARD, 78)
    runs = [(stream, sink) for stream in ("flows", "zeek") for sink in (PARQUET, DISCARD)]
    assert [slow.takes(*run, 78) for run in runs] == [True, True, True, False]
    assert [fast.takes(*run, 78) for run in runs] == [True, True, True, True]
    assert [one.takes(*run, 78) for run in runs] == [True, False, True, False]
    assert not Contender("f", "f", streams=("flows",)).takes("zeek", PARQUET, 12)
    assert not Contender("f", "f", queries=20).takes("flows", PARQUET, 78)


def some_data() -> list[data.Data]:
    """With 78, 24 and 12 queries."""
    each = (data.PAIRS, data.PREFIXES, NAMES)
    return [data.Data("some", Path(), 1, queries, "bytes", 60, 1) for queries in each]


def test_what_is_asked_is_checked(tmp_path: Path) -> None:
    every = ("flows", "zeek", "packets", "prefixes", "monitoring")
    assert multiquery.checked(None, None, quick=False) == ((12, 20, 78), every)
    assert [multiquery._counts(found, (12, 20, 78)) for found in some_data()] == [(12, 20, 78), (24,), (12,)]
    assert [multiquery._counts(found, (5,)) for found in some_data()] == [(5,)] * 3
    assert multiquery.checked([78], ["zeek"], quick=True) == ((78,), ("zeek",))
    with pytest.raises(ConfigError, match=r"no 79 queries\n.*78 pairs"):
        multiquery.run(work=tmp_path, queries=[12, 79])
    with pytest.raises(ConfigError, match=r"unknown data 'tape'\n.*flows, zeek, packets, prefixes, monitoring"):
        multiquery.run(work=tmp_path, streams=["tape"])


def test_a_log_that_is_not_here_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "LOG", tmp_path / "conn.parquet")
    report = multiquery.run(work=tmp_path, rows=1000, engines=["duckdb"], streams=["zeek"])
    assert report["results"] == []
    assert report["notes"] == ["zeek: skipped: conn.parquet is not in ../shared/data/flows beside the project"]


def test_memory_growth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_engine(module: str, package: str, job: EngineJob, timeout: float) -> Answer:
        assert job.batch_rows == 10
        assert len(job.queries) == 20
        peak = {"lfta_peak_bytes": 150 + job.rows // 100, "merge_peak_bytes": 200, "baseline_bytes": 100}
        return Answer("1", 1, job.rows, 1, extra={"memory": peak})

    monkeypatch.setattr(memory, "run_engine", run_engine)
    found = memory.growth(tmp_path, 100, 20, lambda text: None)
    assert [run["rows"] for run in found["runs"]] == [100, 1000]
    assert found["growth"] == {"lfta_peak_bytes": round(60 / 51, 3), "merge_peak_bytes": 1.0}
    monkeypatch.setattr(memory, "run_engine", lambda *_: "failed: no Java")
    assert memory.growth(tmp_path, 100, 20, lambda text: None) == {"note": "failed: no Java"}


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
    folder = data.parts(file, 2000, 900, tmp_path, timedelta(days=1))
    assert folder == data.parts(file, 2000, 900, tmp_path, timedelta(days=1))
    tables = [pa.parquet.read_table(path) for path in sorted(folder.iterdir())]
    assert [t.num_rows for t in tables] == [900, 900, 200, 1]
    assert pa.concat_tables(tables[:3]).equals(pa.parquet.read_table(file).slice(0, 2000))
    assert pa.parquet.read_table(data.prefix(file, 2000, tmp_path)).num_rows == 2000
    assert data.prefix(file, 2500, tmp_path / "elsewhere") == file
    assert tables[3]["ts"][0].as_py() - pc.max(tables[2]["ts"]).as_py() == timedelta(days=1)


def test_text_files(tmp_path: Path) -> None:
    times = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))
    records = pa.table({"ts": times, "name": ["a", None, "c,d"], "n": pa.array([1, 2, 3], pa.int32())})
    pa.parquet.write_table(records, tmp_path / "some.parquet")
    folder = data.texts(tmp_path / "some.parquet", 3, 2, tmp_path)
    assert pa.parquet.read_schema(folder / SCHEMA).equals(records.schema)
    assert [path.read_text() for path in sorted(folder.glob("*.csv"))] == [
        '1,"a",1\n',
        f'2,"{NULL_TEXT}",2\n3,"c,d",3\n',
    ]


IN_PROCESS = ("duckdb", "duckdb_grouping_sets", "polars", "clickhouse")
ROLLING_UP = ("duckdb_rolled_up", "polars_rolled_up", "clickhouse_rolled_up")


@pytest.mark.parametrize("name", [*IN_PROCESS, *ROLLING_UP])
def test_peers_agree_on_prefixes(tmp_path: Path, name: str) -> None:
    """Separate, and rolled up by hand, which is also done with pairs of columns."""
    contender = next(c for c in CONTENDERS if c.name == name)
    if peers.interpreter(contender.package) is None:
        pytest.skip(peers.NOT_INSTALLED)
    streams = [("packets", 20), ("prefixes", 20)] if name in ROLLING_UP else [("prefixes", 20)]
    names = [stream for stream, _ in streams]
    report = multiquery.run(work=tmp_path, rows=20_000, engines=[name], queries=[20], streams=names)
    assert [(line["data"], line["queries"], line["sink"]) for line in report["results"]] == [
        (*stream, sink) for stream in streams for sink in (PARQUET, DISCARD)
    ]
    for line in report["results"]:
        uncounted = contender.module == "clickhouse" and line["sink"] == DISCARD
        assert line["same_answer"] or (uncounted and line["same_answer"] is None), line["note"]


@pytest.mark.parametrize("name", IN_PROCESS)
def test_peers_agree(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On numbers, and on text with NULLs; written, and counted."""
    contender = next(c for c in CONTENDERS if c.name == name)
    if peers.interpreter(contender.package) is None:
        pytest.skip(peers.NOT_INSTALLED)
    monkeypatch.setattr(data, "LOG", small_log(tmp_path))
    report = multiquery.run(work=tmp_path, rows=20_000, engines=[name], queries=[12], streams=["flows", "zeek"])
    runs = [(stream, sink) for stream in ("flows", "zeek") for sink in (PARQUET, DISCARD)]
    assert [(line["data"], line["sink"]) for line in report["results"]] == [r for r in runs if contender.takes(*r, 12)]
    for line in report["results"]:
        uncounted = name == "clickhouse" and line["sink"] == DISCARD
        assert line["same_answer"] or (uncounted and line["same_answer"] is None), line["note"]
        assert line["seconds"] > 0
        assert line["cpu_seconds"] >= 0
        assert line["ratio_to_penstock"] is None


def small_log(folder: Path) -> Path:
    """Records like those of the connection log: addresses of both kinds, text, numbers, NULLs, no order."""
    rng, rows = np.random.default_rng(3), 5000
    columns = {name: pa.array(rng.integers(0, 50, rows)) for name in data.LOG_ATTRIBUTES}
    for name in ("orig_h", "resp_h"):
        columns[name] = pa.array(["10.0.0.1", "192.168.7.9", "fe80::1", "2001:db8::2"]).take(rng.integers(0, 4, rows))
    for name in ("proto", "service", "history"):
        columns[name] = pa.array(["tcp", "udp", None, "dns,ssl", "ShADadFf"]).take(rng.integers(0, 5, rows))
    columns["orig_ip_bytes"] = pa.array(rng.integers(0, 10**6, rows))
    columns["ts"] = pa.array(rng.integers(0, 5 * 86400 * 10**6, rows)).cast(pa.timestamp("us", "UTC"))
    pa.parquet.write_table(pa.table({"ts": columns.pop("ts"), **columns}), folder / "conn.parquet")
    return folder / "conn.parquet"


def test_failing_and_slow_engines(tmp_path: Path) -> None:
    job = EngineJob(str(tmp_path / "none.parquet"), 1, data.PAIRS[:1], str(tmp_path), 1, 0.0)
    failed = peers.run_engine("arrow", "", job, 60)
    assert isinstance(failed, str)
    assert failed.startswith("failed: FileNotFoundError")
    assert peers.run_engine("arrow", "", job, 0.01) == "stopped after 0 s"
    assert peers.run_engine("duckdb", "no_such_package", job, 60) == peers.NOT_INSTALLED
    assert list(tmp_path.iterdir()) == []


def test_the_reason_is_the_end_of_a_traceback() -> None:
    log = "26/11/16 12:27:07 ERROR Executor: task 199.0 rejected"
    traceback = "Traceback (most recent call last):\n  File x\npyspark.errors.StreamingQueryException: too many\n  hint"
    assert peers.reason(f"{log}\n{traceback}\n{log}") == "pyspark.errors.StreamingQueryException: too many"
    assert peers.reason(f"warning\n{log}\n") == log
    assert peers.reason("") == ""
