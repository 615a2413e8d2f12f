"""Whose results a folder holds: other runs' and strangers' files are neither mixed with ours nor removed."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ConfigError, RunError
from penstock.sinks.base import Owner
from penstock.sinks.parquet import ParquetSink
from penstock.state import lease

ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64()), "s": ["a", None, "b"]})


def sink(folder: Path) -> ParquetSink:
    return ParquetSink("q", str(folder / "out"))


def owner(folder: Path, name: str) -> Owner:
    return Owner(name, str(folder / name))


def published(one: ParquetSink, batch: int = 0) -> None:
    one.publish(*one.stage(ROWS, batch, 0, "attempt"))


def test_a_published_part_is_read_back_once(tmp_path: Path) -> None:
    one = sink(tmp_path)
    one.prepare(owner(tmp_path, "a"), overwrite=False)
    staged, final = one.stage(ROWS, 7, 1, "x")
    assert one.files() == []
    one.publish(staged, final)
    one.publish(staged, final)  # doing it again does nothing
    assert one.files() == [final]
    assert Path(final).name == "q-00000007-0001.parquet"
    assert pq.read_table(final).equals(ROWS)
    with pytest.raises(RunError, match="are gone"):
        one.publish(staged + "-lost", final + "-lost")


def test_another_run_is_refused_until_it_overwrites(tmp_path: Path) -> None:
    one, first, second = sink(tmp_path), owner(tmp_path, "a"), owner(tmp_path, "b")
    one.prepare(first, overwrite=False)
    published(one)
    one.prepare(first, overwrite=False)
    with pytest.raises(ConfigError, match="already holds results"):
        one.prepare(second, overwrite=False)
    one.check(first)
    one.prepare(second, overwrite=True)
    assert one.files() == []
    with pytest.raises(RunError, match="taken over"):
        one.check(first)


def test_staged_results_of_another_run_are_not_removed(tmp_path: Path) -> None:
    one = sink(tmp_path)
    one.prepare(owner(tmp_path, "a"), overwrite=False)
    staged, final = one.stage(ROWS, 0, 0, "x")  # committed, and killed before it was published
    with pytest.raises(ConfigError, match="already holds results"):
        one.prepare(owner(tmp_path, "b"), overwrite=False)
    one.publish(staged, final)


def test_a_live_run_is_never_overwritten(tmp_path: Path) -> None:
    one, first = sink(tmp_path), owner(tmp_path, "a")
    held = lease.acquire(Path(first.checkpoint), [os.getpid()])
    one.prepare(first, overwrite=False)
    with pytest.raises(ConfigError, match="another run is writing"):
        one.prepare(owner(tmp_path, "b"), overwrite=True)
    held.release()
    one.prepare(owner(tmp_path, "b"), overwrite=True)


def test_files_of_strangers_stay(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    pq.write_table(ROWS, folder / "input.parquet")
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="not results of penstock"):
            sink(tmp_path).prepare(owner(tmp_path, "a"), overwrite=overwrite)
    assert (folder / "input.parquet").exists()
    assert not (folder / "_penstock.json").exists()
