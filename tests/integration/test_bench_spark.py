"""Engines on Java give the reference's answers; slow, because each starts a machine of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.comparisons import multiquery, packets, peers
from benchmarks.comparisons.contenders import CONTENDERS
from benchmarks.data import files as data


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark_streaming", "spark_grouping_sets", "spark_base_aggregate", "flink"])
def test_peers_on_java_agree(tmp_path: Path, name: str) -> None:
    contender = next(c for c in CONTENDERS if c.name == name)
    if contender.package and peers.interpreter(contender.package) is None:
        pytest.skip(peers.NOT_INSTALLED)
    written, dropped = multiquery.run(work=tmp_path, rows=100_000, quick=True, engines=[name], queries=[5])["results"]
    assert written["same_answer"], written["note"]
    assert dropped["same_answer"] is not False, dropped["note"]
    assert min(written["rows_per_second"], dropped["rows_per_second"]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["flows", "zeek"])
def test_penstock_agrees(tmp_path: Path, stream: str) -> None:
    """Written and counted, with an account of where the time went."""
    if stream == "zeek" and not data.LOG.exists():
        pytest.skip(f"no {data.LOG.name}")
    report = multiquery.run(work=tmp_path, rows=100_000, engines=["penstock"], queries=[5], streams=[stream])
    for line in report["results"]:
        assert line["same_answer"], line["note"]
        assert line["cpu_seconds"] > 0
        assert line["extra"]["time"]["leaves_cpu_ns_per_record"] > 0
    (found,) = report["parts"]
    assert found["groups"] > 0
    assert report["memory"]["runs"][1]["rows"] == 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark_streaming", "spark_grouping_sets", "spark_base_aggregate", "flink"])
def test_peers_on_java_agree_on_prefixes(tmp_path: Path, name: str) -> None:
    contender = next(c for c in CONTENDERS if c.name == name)
    if contender.package and peers.interpreter(contender.package) is None:
        pytest.skip(peers.NOT_INSTALLED)
    report = multiquery.run(work=tmp_path, rows=100_000, quick=True, engines=[name], queries=[12], streams=["prefixes"])
    written, dropped = report["results"]
    assert written["same_answer"], written["note"]
    assert dropped["same_answer"] is not False, dropped["note"]


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["packets", "prefixes", "monitoring"])
def test_penstock_agrees_on_records_that_repeat(tmp_path: Path, stream: str) -> None:
    """With and without sharing, and without Spark."""
    names = ["penstock", "penstock_unshared", "penstock_process", "penstock_process_unshared"]
    report = multiquery.run(work=tmp_path, rows=60_000, engines=names, queries=[20], streams=[stream])
    assert len(report["results"]) == 2 * len(names)
    for line in report["results"]:
        assert line["same_answer"], line["note"]
        figures = line["extra"]["figures"]
        assert figures["hash_operations_per_record"] <= figures["naive_hash_operations_per_record"]
        assert figures["bytes_read_per_record"] > 0
    (found,) = report["parts"]
    assert found["groups"] > 0


@pytest.mark.slow
def test_spark_batch_agrees_on_monitoring(tmp_path: Path) -> None:
    report = multiquery.run(work=tmp_path, rows=60_000, engines=["spark_batch"], streams=["monitoring"])
    assert report["results"][0]["same_answer"], report["results"][0]["note"]


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
