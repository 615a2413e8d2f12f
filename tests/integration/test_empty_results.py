"""Queries that end without a row leave a result that can be read: its columns, no rows, once, also after kills."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.testing.faults import Fault, Kill, Launch, Lineage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "CREATE STREAM s (ts TIMESTAMP, host STRING, size INT) FROM 'csv:{}' WATERMARK ts DELAY '1 second';\n"
SELECT = "SELECT host, count(*) AS n, avg(size) AS mean FROM s [RANGE '1 minute'] GROUP BY host"
RECORDS = "ts,host,size\n2026-01-01T00:00:00Z,a,1\n2026-01-01T00:05:00Z,b,2\n"
COLUMNS = ["host", "n", "mean", "window_start", "window_end"]
NONE = "HAVING count(*) > 5"


def app_of(folder: Path, records: str = RECORDS, into: str = "") -> str:
    (folder / "in").mkdir(exist_ok=True)
    if records:
        (folder / "in" / "1.csv").write_text(records)
    queries = (
        f"CREATE QUERY some {into}AS {SELECT};\nCREATE QUERY none {into.replace('some', 'none')}AS {SELECT} {NONE};"
    )
    return STREAM.format(folder / "in") + queries


def run(
    app: str, folder: Path, start: Callable[[], ps.App] = lambda: ps.App(master="process"), **settings: object
) -> dict:
    running = start().sql(app).start(str(folder / "ckpt"), output=str(folder / "out"), **settings)
    running.await_end()
    return running.summary()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.startswith("_"))


def check(folder: Path, batch: int) -> None:
    assert files(folder / "none") == [f"none-{batch:08d}-0000.parquet"]
    found, full = (pyarrow.dataset.dataset(folder / name, exclude_invalid_files=True) for name in ("none", "some"))
    assert found.schema == full.schema
    assert found.schema.names == COLUMNS
    assert found.count_rows() == 0


def test_a_query_without_rows(tmp_path: Path) -> None:
    app = app_of(tmp_path)
    assert run(app, tmp_path, batch_rows=1)["queries"]["none"]["rows"] == 0
    check(tmp_path / "out", 1)
    before = files(tmp_path / "out")
    run(app, tmp_path)  # all was read: nothing changes
    assert files(tmp_path / "out") == before


def test_a_source_without_records_and_columns_as_with_some(tmp_path: Path) -> None:
    run(app_of(tmp_path, ""), tmp_path)
    assert files(tmp_path / "out") == ["none-00000000-0000.parquet", "some-00000000-0000.parquet"]
    (tmp_path / "2").mkdir()
    run(app_of(tmp_path / "2"), tmp_path / "2")
    empty, full = (
        pq.read_table(next((place / "out" / "some").glob("*.parquet"))) for place in (tmp_path, tmp_path / "2")
    )
    assert empty.schema == full.schema
    assert (empty.num_rows, full.num_rows) == (0, 2)


@pytest.mark.parametrize(("kind", "text"), [("csv", '"host","n","mean","window_start","window_end"\n'), ("json", "")])
def test_text(kind: str, text: str, tmp_path: Path) -> None:
    run(app_of(tmp_path, into=f"INTO '{kind}:{tmp_path}/out/some' "), tmp_path)
    assert (tmp_path / "out" / "none" / f"none-00000000-0000.{kind}").read_text() == text
    assert files(tmp_path / "out" / "some") == [f"some-00000000-0000.{kind}"]


def test_rows_that_are_handed_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is given a batch without rows."""
    app = app_of(tmp_path, into="INTO 'console:' ")
    run(app, tmp_path)
    out = capsys.readouterr().out
    assert "some, batch 0" in out
    assert "none, batch" not in out


@pytest.mark.parametrize("point", ["sink.stage", "manifest.write", "manifest.written", "sink.publish", "sink.rename"])
def test_kills_leave_one_file(point: str, tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text(app_of(tmp_path, ""))
    launch = Launch(
        tmp_path / "app.sql", tmp_path / "ckpt", tmp_path / "out", 1, ("--parallelism", "1")
    ).without_spark()
    lineage = Lineage(launch, tmp_path / "logs")
    try:
        _, hit = lineage.disturb(Kill(Fault(point)), random.Random(1))
        assert hit
        ended, _ = lineage.disturb(Kill(), random.Random(1))
        assert ended.code == 0, ended.messages
        assert files(tmp_path / "out") == ["none-00000000-0000.parquet", "some-00000000-0000.parquet"]
    finally:
        lineage.clean_up()


def test_stopped_and_ended_later(tmp_path: Path) -> None:
    """Until it is stopped a run has no end, so there is no file yet; the next one may end, or have rows."""
    app = app_of(tmp_path, "")
    running = (
        ps.App(master="process").sql(app).start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), until="stopped")
    )
    while not running.waiting():  # batch 0 has no records
        time.sleep(0.05)
    running.stop()
    assert files(tmp_path / "out") == []
    assert not running.summary()["ended"]
    run(app_of(tmp_path), tmp_path)
    check(tmp_path / "out", 1)
    assert pq.read_table(next((tmp_path / "out" / "some").glob("*.parquet"))).num_rows == 2


def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    running = ps.App(spark).sql(app_of(tmp_path)).start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"))
    running.await_end()
    assert running.results("none").columns == COLUMNS
    assert running.results("none").collect() == []
    assert spark.read.parquet(str(tmp_path / "out" / "none")).columns == COLUMNS
    check(tmp_path / "out", 0)
