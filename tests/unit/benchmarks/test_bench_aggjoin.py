"""The benchmark `aggjoin`: its streams, reference answers, what engines are given, and the report."""

from __future__ import annotations

import io
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from benchmarks import command
from benchmarks.comparisons import aggjoin, peers
from benchmarks.comparisons.aggjoin import CONTENDERS, JoinContender
from benchmarks.data.joins import CASES, SLIDING, START, TUMBLING, JoinCase, join_files
from benchmarks.engines.joins import arrow as joins_arrow
from benchmarks.engines.joins import penstock as joins_penstock
from benchmarks.measure import table
from benchmarks.measure.digest import digest
from benchmarks.measure.job import Answer, JoinJob
from penstock.errors import ConfigError

SMALL = JoinCase("small", 40, 4, (3, 2))


def quiet(text: str) -> None:
    pass


def test_streams_are_in_order_and_the_same_again(tmp_path: Path) -> None:
    files = join_files(tmp_path, SMALL, quiet)
    again = join_files(tmp_path / ".", SMALL, lambda text: pytest.fail(text))
    assert files == again
    for file, names, groups in zip(files, (["k", "g", "x"], ["k", "h", "y"]), SMALL.groups, strict=True):
        rows = pq.read_table(file)
        times = rows["ts"].cast("int64").to_pylist()
        assert rows.column_names == ["ts", *names]
        assert len(times) == 12 * 40
        assert times == sorted(set(times))
        assert [sum(START + n * 10**8 <= t < START + (n + 1) * 10**8 for t in times) for n in range(12)] == [40] * 12
        assert set(rows["k"].to_pylist()) == set(range(4))
        assert set(rows[names[1]].to_pylist()) == set(range(groups))


def test_cases_are_shortened_in_proportion() -> None:
    assert [case.shortened(10**9) for case in CASES] == list(CASES)
    dense = CASES[1].shortened(5_004)
    assert (dense.rows, dense.keys) == (5_000, 10)
    assert CASES[0].shortened(1).keys == 1
    assert dense.what == "5,000² records a window, 10 keys, 150 × 10 groups"
    with pytest.raises(ConfigError, match=r"unknown data 'tape'\n.*few, dense, wide, once"):
        aggjoin.cases(["tape"], 1000)


def test_pairs_of_windows() -> None:
    assert TUMBLING.pairs(SMALL) == 12 * 400
    assert TUMBLING.rows(SMALL) == 480
    whole, rising = 12, 2 * sum((n / 10) ** 2 for n in range(1, 10))
    assert SLIDING.pairs(SMALL) == round((whole + rising) * 400)
    assert SLIDING.rows(SMALL) == 84
    assert (TUMBLING.slide_seconds, SLIDING.slide_seconds) == (100, 10)


def test_contenders_read_a_prefix_or_nothing() -> None:
    slow, one_key = JoinContender("s", "s", pairs=5 * 400, copies=10_000), replace(SMALL, keys=1)
    assert slow.slides(SMALL, TUMBLING) == 5
    assert slow.slides(one_key, TUMBLING) == 2  # 3,200 pairs: more than it is given, but less than five minutes
    assert replace(slow, pairs=600).slides(one_key, TUMBLING) == 0
    assert JoinContender("f", "f").slides(SMALL, TUMBLING) == 12
    assert JoinContender("k", "k", copies=2 * 40 * 3).slides(SMALL, TUMBLING) == 3
    assert JoinContender("k", "k", copies=2 * 40 * 10).slides(SMALL, SLIDING) == 10
    said = aggjoin._skipped(replace(slow, pairs=600), one_key, TUMBLING)
    assert said == "left out: 3,200 pairs even of the shortest stream, more than five minutes"
    little = JoinContender("k", "k", copies=9)
    assert little.slides(SMALL, SLIDING) == 0
    assert "800 records in state" in aggjoin._skipped(little, SMALL, SLIDING)


def by_hand(job: JoinJob) -> dict[int, dict[tuple[int, int], tuple[int, int, int]]]:
    """All pairs of all windows, one by one."""
    left, right = (joins_arrow.read(file).to_pylist() for file in (job.left, job.right))
    found: dict[int, dict[tuple[int, int], tuple[int, int, int]]] = {}
    for a in left:
        for b in right:
            if a["k"] == b["k"]:
                first = (max(a["ts"], b["ts"]) - job.range) // job.slide * job.slide + job.slide
                for start in range(first, min(a["ts"], b["ts"]) + 1, job.slide):
                    groups = found.setdefault(start, defaultdict(lambda: (0, 0, -1)))
                    n, total, most = groups[a["g"], b["h"]]
                    groups[a["g"], b["h"]] = n + 1, total + a["x"], max(most, b["y"])
    return found


@pytest.mark.parametrize("movement", [TUMBLING, SLIDING])
def test_reference_is_that_of_all_pairs(tmp_path: Path, movement: Any) -> None:
    files = join_files(tmp_path, SMALL, quiet)
    job = aggjoin._job(files, movement.rows(SMALL), movement, tmp_path)
    expected = by_hand(job)
    answer = joins_arrow.run(job)
    rows = [(g, h, start, *values) for start, groups in expected.items() for (g, h), values in groups.items()]
    assert answer.digests == (str(digest([pa.array(column) for column in zip(*rows, strict=True)])),)
    assert answer.extra["windows"] == len(expected) == (12 if movement is TUMBLING else 30)


@pytest.mark.slow
def test_engines_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["penstock_process", "penstock_late", "duckdb", "duckdb_late"]
    if peers.interpreter("duckdb") is None:
        pytest.skip(peers.NOT_INSTALLED)
    monkeypatch.setattr(aggjoin, "CASES", (replace(SMALL, rows=400),))
    report = aggjoin.run(work=tmp_path, rows=4_800, engines=names)
    assert [(line["windows"], line["engine"]) for line in report["results"]] == [
        (movement.name, name) for movement in (TUMBLING, SLIDING) for name in names
    ]
    for line in report["results"]:
        assert line["same_answer"], line["note"]
        assert line["seconds"] > 0
        assert line["ms_a_window"] > 0
        assert line["ratio_to_penstock"] is None


def fake_run(module: str, package: str, job: JoinJob, timeout: float) -> Answer | str:
    if module == "joins.arrow":
        return Answer("26", 1, 2 * job.rows, 1, ("right",))
    if module == "joins.duckdb":
        return peers.NOT_INSTALLED if job.mode else Answer("2", 4.0, 2 * job.rows, 5.0, ("wrong",), cpu_seconds=6.0)
    if module == "joins.spark":
        assert len(list(Path(job.left).glob("*.parquet"))) == len(list(Path(job.right).glob("*.parquet"))) == 4
        return Answer("4", 30.0, job.rows, 50.0, ("right",), extra={"state_bytes": 5_000_000})
    extra = {"join_seconds": 0.5, "windows": 10, "state_bytes": 2_000}
    return Answer("1", 2.0, 2 * job.rows, 9.0, ("right",), "", extra, 3.0)


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggjoin, "run_engine", fake_run)
    monkeypatch.setattr(aggjoin, "CASES", (SMALL,))
    contenders = [c if c.name != "penstock_late" else replace(c, pairs=1) for c in CONTENDERS]
    monkeypatch.setattr(aggjoin, "CONTENDERS", contenders)
    out = io.StringIO()
    (report,) = command.run_benchmarks(["aggjoin"], 480, False, None, tmp_path, Console(file=out, width=100))
    assert report["name"] == "aggjoin"
    assert report["rows"] == 480
    lines = {line["engine"]: line for line in report["results"] if line["windows"] == "tumbling"}
    assert list(lines) == [contender.name for contender in CONTENDERS]
    assert lines["penstock"]["ratio_to_penstock"] == 1
    assert lines["penstock"]["ms_a_window"] == 50
    assert lines["duckdb"]["ratio_to_penstock"] == lines["duckdb"]["core_ratio_to_penstock"] == 2
    assert not lines["duckdb"]["same_answer"]
    assert lines["duckdb_late"]["note"] == peers.NOT_INSTALLED
    assert lines["penstock_late"]["note"].startswith("left out: 800 pairs")
    assert lines["spark_stream_join"]["ratio_to_penstock"] == 30
    assert lines["spark_stream_join"]["same_answer"]
    for text in ("30x", "DIFFERS", "same", "not installed", "left out", "50.0", "5.0M", "sliding by a tenth"):
        assert text in out.getvalue()
    assert {"engine", "version", "work", "seconds", "ratio_to_penstock", "same_answer"} <= set(lines["duckdb"])
    assert table.OTHERS["aggjoin"]


def test_what_penstock_tells_of_a_run() -> None:
    batches = [{"windows": n, "bytes": {"kept": 100 - n}} for n in (0, 2, 3, 0)]
    summary = {
        "seconds": {"tasks": [9.0, 9.0, 2.0, 1.0], "merge": [8.0, 8.0, 1.0, 0.5], "startup": 4.0},
        "batches": batches,
        "state": {"written": 7, "read": 8},
        "memory": {},
    }
    first = joins_penstock.first_warm(summary)
    told = joins_penstock.told(summary, first)
    assert first == 2
    assert (told["task_seconds"], told["join_seconds"], told["windows"], told["state_bytes"]) == (3.0, 1.5, 3, 100)
    assert joins_penstock.first_warm({"batches": batches[:2]}) == 0
