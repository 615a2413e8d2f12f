"""Runs that follow a folder: nothing there at first, then files, with and without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock as ps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = """
CREATE STREAM s (ts TIMESTAMP, host STRING, size INT) FROM '{kind}:{folder}' WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT host, count(*) AS n FROM s [RANGE '1 minute'] GROUP BY host;
"""
HEADER = "ts,host,size\n"


def await_that(holds: Callable[[], bool], seconds: float = 300) -> None:
    """The time is a guard against hanging, not a claim about speed."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def put(folder: Path, name: str, *minutes: int) -> None:
    lines = "".join(f"2026-01-01T00:{minute:02d}:00Z,a,1\n" for minute in minutes)
    (folder / f".{name}").write_text(HEADER + lines)
    (folder / f".{name}").rename(folder / name)


def follow(app: Callable[[], ps.App], tmp_path: Path) -> None:
    folder, places = tmp_path / "in", {"checkpoint": str(tmp_path / "ckpt"), "output": str(tmp_path / "out")}
    folder.mkdir()
    text = APP.format(kind="csv", folder=folder)
    run = app().sql(text).start(**places, until="stopped")
    await_that(run.waiting)
    assert run.progress()["rows"] == 0
    put(folder, "1.csv", 0, 5)
    await_that(lambda: run.progress()["rows"] == 2)
    await_that(run.waiting)
    run.stop()
    assert not run.waiting()
    assert run.summary()["queries"]["q"]["rows"] == 1
    # Again: nothing new, then one more file, and at last an end.
    run = app().sql(text).start(**places, until="stopped")
    await_that(run.waiting)
    put(folder, "2.csv", 6)
    await_that(lambda: run.progress()["rows"] == 3)
    run.stop()
    run = app().sql(text).start(**places)
    assert not run.waiting()
    run.await_end()
    found = run.summary()
    assert (found["ended"], found["queries"]["q"]["rows"], found["accounting"]["exact"]) == (True, 3, 3)


def test_without_spark(tmp_path: Path) -> None:
    follow(lambda: ps.App(master="process"), tmp_path)


def test_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    follow(lambda: ps.App(spark), tmp_path)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_an_empty_folder_has_an_end(kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    run = ps.App(master="process").sql(APP.format(kind=kind, folder=tmp_path / "in")).start(
        str(tmp_path / "ckpt"), output=str(tmp_path / "out")
    )  # fmt: skip
    run.await_end()
    assert run.summary()["ended"]
