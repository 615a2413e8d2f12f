"""The benchmark `aggjoin`: its streams, reference answers, what engines are given, and the report."""

from __future__ import annotations

import io
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from benchmarks import command
from benchmarks.comparisons import aggjoin, peers
from benchmarks.comparisons.join_contenders import CONTENDERS, JoinContender
from benchmarks.comparisons.join_goals import against, goals
from benchmarks.data import files as data
from benchmarks.data.joins import CASES, SLIDING, START, TUMBLING, JoinCase, join_files
from benchmarks.engines.joins import arrow as joins_arrow
from benchmarks.engines.joins import flink as joins_flink
from benchmarks.engines.joins import penstock as joins_penstock
from benchmarks.engines.joins import tasks as joins_tasks
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
    said = replace(slow, pairs=600).left_out(one_key, TUMBLING)
    assert said == "left out: 3,200 pairs even of the shortest stream, more than five minutes"
    little = JoinContender("k", "k", copies=9)
    assert little.slides(SMALL, SLIDING) == 0
    assert "800 records in state" in little.left_out(SMALL, SLIDING)


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
    job = aggjoin._job(files, SMALL, movement, movement.slides, tmp_path)
    expected = by_hand(job)
    answer = joins_arrow.run(job)
    rows = [(g, h, start, *values) for start, groups in expected.items() for (g, h), values in groups.items()]
    assert answer.digests == (str(digest([pa.array(column) for column in zip(*rows, strict=True)])),)
    assert answer.extra["windows"] == len(expected) == (12 if movement is TUMBLING else 30)


@pytest.mark.slow
def test_engines_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["penstock_process", "penstock_early", "penstock_late", "duckdb", "duckdb_late"]
    if peers.interpreter("duckdb") is None:
        pytest.skip(peers.NOT_INSTALLED)
    names += ["flink_window_join"] if peers.interpreter("pyflink") is not None else []
    monkeypatch.setattr(aggjoin, "CASES", (replace(SMALL, rows=400),))
    report = aggjoin.run(work=tmp_path, rows=4_800, engines=names)
    assert [(line["windows"], line["engine"]) for line in report["results"]] == [
        (movement.name, name) for movement in (TUMBLING, SLIDING) for name in names
    ]
    for line in report["results"]:
        assert line["same_answer"], line["note"]
        assert line["seconds"] >= 0
        assert (line["ms_a_window"] is None) == (line["engine"] == "flink_window_join")
        assert line["ratio_to_penstock"] is None
        assert ("tasks_ratio" in line) == line["engine"].startswith("penstock")
    assert {(line["figure"], line["windows"]) for line in report["goals"]} == {
        ("duckdb", SLIDING.name), ("duckdb", TUMBLING.name), ("tasks", SLIDING.name), ("tasks", TUMBLING.name),
    }  # fmt: skip
    assert {tuple(line["reached"]) for line in report["goals"]} == {tuple(names[:3])}


def fake_run(module: str, package: str, job: JoinJob, timeout: float) -> Answer | str:
    if module == "joins.arrow":
        return Answer("26", 1, 2 * job.rows, 1, ("right",))
    if module == "joins.duckdb":
        return peers.NOT_INSTALLED if job.mode else Answer("2", 4.0, 2 * job.rows, 5.0, ("wrong",), cpu_seconds=6.0)
    if module == "joins.spark":
        assert len(list(Path(job.left).glob("*.parquet"))) == len(list(Path(job.right).glob("*.parquet"))) == 4
        return Answer("4", 30.0, job.rows, 50.0, ("right",), extra={"state_bytes": 5_000_000})
    if module == "joins.flink":
        texts = [path.read_text().splitlines() for path in sorted(Path(job.left).glob("*.csv"))]
        assert sum(map(len, texts)) == job.rows
        assert [lines[0].split(",")[0] for lines in texts[:2]] == [str(START), str(START + 2_500_000)]  # dealt in turn
        return Answer("2", 40.0, job.rows, 60.0, ("right",), extra={"state_bytes": 6_000_000})
    if module == "joins.tasks":
        ratio = {"auto": 1.25, "early": 1.75, "late": 2.0}[job.mode]
        return Answer("1", 1, 1, 1, extra={"tasks_ns": 5, "decode_ns": 3, "probe_ns": 1, "tasks_ratio": ratio})
    extra = {"join_seconds": 0.5, "windows": 10, "state_bytes": 2_000}
    return Answer("1", 2.0, 2 * job.rows, 9.0, ("right",), "", extra, 3.0)


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggjoin, "run_engine", fake_run)
    monkeypatch.setattr(aggjoin.machine, "cores", lambda: 2)
    monkeypatch.setattr(aggjoin, "CASES", (SMALL,))
    contenders = [c if c.name != "penstock_late" else replace(c, pairs=1) for c in CONTENDERS]
    monkeypatch.setattr(aggjoin, "CONTENDERS", contenders)
    out = io.StringIO()
    (report,) = command.run_benchmarks(["aggjoin"], 480, False, None, tmp_path, Console(file=out, width=110))
    assert report["name"] == "aggjoin"
    assert report["rows"] == 480
    lines = {line["engine"]: line for line in report["results"] if line["windows"] == "tumbling"}
    assert list(lines) == [contender.name for contender in CONTENDERS]
    assert lines["penstock"]["ratio_to_penstock"] == 1
    assert lines["penstock"]["ms_a_window"] == 50
    assert lines["penstock"]["tasks_ratio"] == lines["penstock_process"]["tasks_ratio"] == 1.25
    assert lines["duckdb"]["ratio_to_penstock"] == lines["duckdb"]["core_ratio_to_penstock"] == 2
    assert not lines["duckdb"]["same_answer"]
    assert lines["duckdb_late"]["note"] == peers.NOT_INSTALLED
    assert lines["penstock_late"]["note"].startswith("left out: 800 pairs")
    assert lines["spark_stream_join"]["ratio_to_penstock"] == 30
    assert lines["spark_stream_join"]["same_answer"]
    assert lines["flink_window_join"]["ratio_to_penstock"] == 40
    first = report["against"][0]
    assert first == {
        "case": "small", "windows": "tumbling", "engine": "penstock", "spark": 30, "flink": 40, "duckdb": None,
        "tasks": 1.25, "spark_state": 2500,
    }  # fmt: skip
    assert [line["met"] for line in report["goals"] if line["figure"] == "tasks"] == [
        ["penstock", "penstock_process"]
    ] * 2
    for text in ("30x", "DIFFERS", "same", "not installed", "left out", "50.0", "5.0M", "sliding by a tenth", "1.25*"):
        assert text in out.getvalue()
    assert {"engine", "version", "work", "seconds", "ratio_to_penstock", "same_answer"} <= set(lines["duckdb"])
    assert table.OTHERS["aggjoin"]


def test_rounds_alternate_and_medians_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = list[str]()

    def engine(module: str, package: str, job: JoinJob, timeout: float) -> Answer | str:
        if module in ("joins.arrow", "joins.tasks"):
            return fake_run(module, package, replace(job, mode="early"), timeout)
        ran.append(module)
        turn = ran.count(module)
        if module == "joins.duckdb" and turn == 2:
            return "failed: a round"
        extra = {"join_seconds": (5.0, 1.0, 3.0)[turn - 1], "windows": 10, "state_bytes": 100 * turn}
        return Answer("1", (9.0, 2.0, 4.0)[turn - 1], 10, 9.0, ("right" if turn < 3 else "wrong",), "", extra)

    monkeypatch.setattr(aggjoin, "run_engine", engine)
    monkeypatch.setattr(aggjoin, "CASES", (SMALL,))
    monkeypatch.setattr(aggjoin, "MOVEMENTS", (TUMBLING,))
    out = io.StringIO()
    report = aggjoin.run(work=tmp_path, rows=480, engines=["penstock_process", "duckdb"], repeat=3)
    table.show(report, Console(file=out, width=110))
    assert ran == ["joins.penstock", "joins.duckdb"] * 3
    ours, theirs = report["results"]
    assert (ours["seconds"], ours["ms_a_window"], ours["state_bytes"]) == (4.0, 300, 300)
    assert ours["seconds_of_rounds"] == [9.0, 2.0, 4.0]
    assert not ours["same_answer"]
    assert theirs["seconds"] == 6.5
    assert "no answer in a round: failed: a round" in theirs["note"]
    assert report["against"] == report["goals"] == []  # answers differ
    assert "medians of 3 runs" in out.getvalue()
    with pytest.raises(ConfigError, match="engines cannot run 0 times"):
        list(command.run_benchmarks(["aggjoin"], 480, False, None, tmp_path, Console(file=out), repeat=0))


def line_of(engine: str, case: str = "few", windows: str = SLIDING.name, **figures: Any) -> dict[str, Any]:
    known = {"seconds": 1.0, "rows": 1000, "ms_a_window": 10.0, "state_bytes": 10, "same_answer": True}
    return {"engine": engine, "case": case, "windows": windows, "work": f"{case} {windows}", **known, **figures}


def test_goals() -> None:
    lines = [
        line_of("penstock", tasks_ratio=1.5),
        line_of("penstock_process", seconds=0.25),
        line_of("spark_stream_join", seconds=10.0, rows=100, state_bytes=70),
        line_of("duckdb", ms_a_window=35.0),
        line_of("duckdb_late", ms_a_window=29.0),
        line_of("penstock", windows=TUMBLING.name, tasks_ratio=1.6),
        line_of("duckdb", windows=TUMBLING.name, ms_a_window=10.0),
        line_of("duckdb_late", windows=TUMBLING.name, ms_a_window=1.0, same_answer=False),
    ]
    found = against(lines, ["penstock", "penstock_process"])
    assert [(line["windows"], line["engine"], line["spark"], line["flink"], line["duckdb"]) for line in found] == [
        (SLIDING.name, "penstock", 100, None, 2.9),
        (SLIDING.name, "penstock_process", 400, None, 2.9),
        (TUMBLING.name, "penstock", None, None, 1),
    ]
    assert found[0]["spark_state"] == 7
    assert [(line["figure"], line["goal"], line["windows"], line["reached"], line["met"]) for line in goals(found)] == [
        ("spark", 100, SLIDING.name, {"penstock": 100, "penstock_process": 400}, ["penstock", "penstock_process"]),
        ("duckdb", 3, SLIDING.name, {"penstock": 2.9, "penstock_process": 2.9}, []),
        ("duckdb", 1, TUMBLING.name, {"penstock": 1}, ["penstock"]),
        ("tasks", 1.5, SLIDING.name, {"penstock": 1.5}, ["penstock"]),
        ("tasks", 1.5, TUMBLING.name, {"penstock": 1.6}, []),
    ]


def test_a_prefix_has_the_row_groups_of_its_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": list(range(5000))}), tmp_path / "a.parquet", row_group_size=1000)
    copy = pq.ParquetFile(data.prefix(tmp_path / "a.parquet", 2500, tmp_path))
    assert [copy.metadata.row_group(n).num_rows for n in range(copy.metadata.num_row_groups)] == [1000, 1000, 500]


def test_micro_batches_are_whole_row_groups(tmp_path: Path) -> None:
    case = replace(SMALL, rows=20_000)
    job = aggjoin._job(join_files(tmp_path, case, quiet), case, SLIDING, 21, tmp_path)
    assert (job.rows, case.group_rows, job.batch_rows) == (42_000, 2000, 8000)


def test_tasks_beside_decode_and_a_probe(tmp_path: Path) -> None:
    files = join_files(tmp_path, SMALL, quiet)
    job = replace(aggjoin._job(files, SMALL, TUMBLING, 12, tmp_path), mode="late")
    answer = joins_tasks.run(job)
    assert answer.rows == 960
    assert set(aggjoin.TASKS) <= set(answer.extra)
    assert all(answer.extra[name] > 0 for name in aggjoin.TASKS)
    keys = joins_tasks.packed(pq.read_table(job.left), job.slide)
    rows = pq.read_table(job.left).to_pylist()
    groups = {(row["k"], row["g"], row["ts"].timestamp() // 100) for row in rows}
    assert len(np.unique(keys)) == len(groups) == joins_tasks.probe_all(keys, len(groups))


def test_flink_is_asked_for_windows_that_slide_as_hops() -> None:
    job = JoinJob("a", "b", 1, "w", 2, 0.0, range_seconds=100, slide_seconds=10)
    assert (
        "HOP(TABLE whole_a, DESCRIPTOR(`at`), INTERVAL '10' SECOND(6), INTERVAL '100' SECOND(6))"
        in joins_flink.query(job, "whole")
    )
    tumbling = joins_flink.query(replace(job, slide_seconds=100), "one")
    assert "TUMBLE(TABLE one_b, DESCRIPTOR(`at`), INTERVAL '100' SECOND(6))" in tumbling


def test_checkpoints_of_flink_are_measured_while_they_are_there(tmp_path: Path) -> None:
    with joins_flink.watched(tmp_path) as sizes:
        whole, begun = tmp_path / "job" / "chk-1", tmp_path / "job" / "chk-2"
        for folder in (whole, begun):
            folder.mkdir(parents=True)
            (folder / "state").write_bytes(bytes(1000))
        (whole / "_metadata").write_bytes(bytes(10))
    assert sizes == [1010]


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
