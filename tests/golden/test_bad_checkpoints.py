"""Checkpoints that a run cannot go on from, or `penstock state` not show: cli/*.txt are the whole messages.

One real run is stopped with its windows open; every case finds its folder as that run left it, and changes something.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Case, NoSpark, arrange, compare, held, penstock, quick_or_slow

from penstock.app.api import App
from penstock.state import checked, identity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = """CREATE STREAM s FROM 'parquet:data' WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT a, count(*) AS n FROM s [WINDOW 1 MINUTE] GROUP BY a;
"""
RUN = "run app.sql --quiet --checkpoint ckpt --output out"
STATE = "state --checkpoint ckpt"
BATCHES, ROWS = 3, 500


@dataclass(frozen=True)
class Stopped:
    """A folder with a stopped run, and a copy of it."""

    folder: Path
    copy: Path


def rows(count: int, start: int = 0) -> pa.Table:
    times = pa.array([(start + number) * 250_000 for number in range(count)], pa.timestamp("us"))
    return pa.table({"ts": times, "a": pa.array([number % 7 for number in range(count)])})


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    base = tmp_path_factory.mktemp("stopped")
    folder = base / "run"
    (folder / "data").mkdir(parents=True)
    pq.write_table(rows(BATCHES * ROWS), folder / "data" / "a.parquet", row_group_size=ROWS)
    (folder / "app.sql").write_text(APP)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run = App(spark).sql(APP).start("ckpt", output="out", batch_rows=ROWS, until="stopped")
        while run.progress()["rows"] < BATCHES * ROWS:
            assert not run.await_end(1)
        run.stop()
    shutil.copytree(folder, base / "copy")
    return Stopped(folder, base / "copy")


@pytest.fixture
def folder(stopped: Stopped, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: NoSpark())
    shutil.rmtree(stopped.folder)
    shutil.copytree(stopped.copy, stopped.folder)
    return stopped.folder


def damage(pattern: str) -> Callable[[Path], None]:
    """Change a byte in the middle of the last file that matches."""

    def change(folder: Path) -> None:
        path = sorted(folder.glob(pattern))[-1]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    return change


def cut(pattern: str, size: int = 0) -> Callable[[Path], None]:
    return lambda folder: os.truncate(sorted(folder.glob(pattern))[-1], size)


def remove(pattern: str) -> Callable[[Path], None]:
    return lambda folder: sorted(folder.glob(pattern))[-1].unlink()


def folder_instead(pattern: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = sorted(folder.glob(pattern))[-1]
        path.unlink()
        path.mkdir()

    return change


def rewrite(folder: Path) -> None:
    pq.write_table(rows(BATCHES * ROWS, 1), folder / "data" / "a.parquet")


def arrive(table: pa.Table) -> Callable[[Path], object]:
    return lambda folder: pq.write_table(table, folder / "data" / "b.parquet")


def broken_arrives(folder: Path) -> None:
    (folder / "data" / "b.parquet").write_bytes(b"PAR1")


def other_format(number: int) -> Callable[[Path], None]:
    """A checkpoint of another format. Nothing else of it can be read, and nothing else is looked at."""

    def change(folder: Path) -> None:
        found = identity.load(folder / "ckpt")
        old = {"version": number, "id": found.id, "anything": ["else"]}
        (folder / "ckpt" / "app.json").write_bytes(checked.encode(old))
        for path in (*folder.glob("ckpt/versions/*"), *folder.glob("ckpt/manifests/*")):
            path.write_bytes(b"of another format")

    return change


def made_without_spark(folder: Path) -> None:
    found = replace(identity.load(folder / "ckpt"), engine="process")
    (folder / "ckpt" / "app.json").write_bytes(checked.dump(found))


def changed(old: str, new: str) -> str:
    assert old in APP
    return APP.replace(old, new)


IDS = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "UUID",
    r"-[0-9a-f]{8}\.seg": "-ATTEMPT.seg",
    r"exp: \S+ got: \S+": "exp: X got: Y",
}
PROCESS = {r"process \d+ on \S+": "process PID on HOST"}
CASES = [
    # Another app.
    Case("checkpoint_query_changed", RUN, changed("1 MINUTE", "2 MINUTES")),
    Case("checkpoint_select_changed", RUN, changed("count(*) AS n", "count(*) AS m")),
    Case("checkpoint_where_added", RUN, changed("GROUP BY", "WHERE a > 3 GROUP BY")),
    Case("checkpoint_stream_changed", RUN, changed("'1 second'", "'2 seconds'")),
    Case("checkpoint_stream_of_another_name", RUN, APP.replace(" s ", " t ")),
    Case("checkpoint_source_changed", RUN, changed("'parquet:data'", "'generate:uniform'")),
    Case("checkpoint_other_output", RUN.replace("--output out", "--output elsewhere")),
    Case("checkpoint_sink_added", RUN, changed("QUERY q", "QUERY q INTO 'csv:elsewhere'")),
    # Files that are not what they were.
    Case("checkpoint_input_changed", RUN, arrange=rewrite),
    Case("checkpoint_input_damaged", RUN, arrange=cut("data/a.parquet", 1000)),
    Case("checkpoint_input_arrives_damaged", RUN, arrange=broken_arrives),
    Case("checkpoint_input_arrives_different", RUN, arrange=arrive(rows(5).rename_columns(["ts", "b"]))),
    # Damage.
    Case("checkpoint_manifest_damaged", RUN, arrange=damage("ckpt/manifests/*.json")),
    Case("checkpoint_manifest_empty", RUN, arrange=cut("ckpt/manifests/*.json")),
    Case("checkpoint_manifest_is_a_folder", RUN, arrange=folder_instead("ckpt/manifests/*.json"), code=1),
    Case("checkpoint_version_damaged", RUN, arrange=damage("ckpt/versions/*.json")),
    Case("checkpoint_identity_damaged", RUN, arrange=damage("ckpt/app.json")),
    Case("checkpoint_file_log_damaged", RUN, arrange=damage("ckpt/files/s/*.json")),
    Case("checkpoint_of_an_older_format", RUN, arrange=other_format(3)),
    Case("checkpoint_of_a_newer_format", RUN, arrange=other_format(99)),
    # Another engine.
    Case("checkpoint_made_with_spark", f"{RUN} --master process"),
    Case("checkpoint_made_without_spark", RUN, arrange=made_without_spark),
    # In use.
    Case("checkpoint_in_use", RUN, arrange=lambda folder: held(folder / "ckpt"), hide=PROCESS),
    Case("checkpoint_on_another_host", RUN, arrange=lambda folder: held(folder / "ckpt", "elsewhere", 17)),
    # What `penstock state` says of the same.
    Case("state_manifest_damaged", STATE, arrange=damage("ckpt/manifests/*.json")),
    Case("state_version_damaged", STATE, arrange=damage("ckpt/versions/*.json")),
    Case("state_version_missing", STATE, arrange=remove("ckpt/versions/*.json")),
    Case("state_of_an_older_format", STATE, arrange=other_format(3)),
    Case("state_of_a_newer_format", f"{STATE} --json", arrange=other_format(99)),
    Case("state_identity_damaged", f"{STATE} --json", arrange=cut("ckpt/app.json", 20)),
]


# What only shows when the state is read: a segment when its windows close, Spark's own log when it starts.
READING = [
    Case("checkpoint_segment_damaged", RUN, arrange=damage("ckpt/segments/*.seg"), code=1, hide=IDS),
    Case("checkpoint_segment_cut_off", RUN, arrange=cut("ckpt/segments/*.seg", 100), code=1, hide=IDS),
    Case("checkpoint_segment_missing", RUN, arrange=remove("ckpt/segments/*.seg"), code=1, hide=IDS),
    Case("checkpoint_manifest_missing", RUN, arrange=remove("ckpt/manifests/*.json"), code=1, hide=IDS),
    Case("checkpoint_offset_damaged", RUN, arrange=cut("ckpt/spark/offsets/[0-9]", 9), code=1, hide=IDS),
    Case("checkpoint_offset_not_json", RUN, arrange=damage("ckpt/spark/offsets/[0-9]"), code=1, hide=IDS),
    Case("checkpoint_offset_missing", RUN, arrange=remove("ckpt/spark/offsets/[0-9]"), code=1, hide=IDS),
    Case("checkpoint_commit_damaged", RUN, arrange=cut("ckpt/spark/commits/[0-9]", 1), code=1, hide=IDS),
    Case("checkpoint_metadata_damaged", RUN, arrange=cut("ckpt/spark/metadata", 3), code=1, hide=IDS),
]


QUICK = ("checkpoint_segment_damaged", "checkpoint_offset_damaged", "checkpoint_metadata_damaged")


@pytest.mark.parametrize("case", quick_or_slow(READING, *QUICK))
def test_reading(
    case: Case, folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: spark)
    monkeypatch.setattr(App, "close", lambda self, wait=True: None)
    arrange(case, folder)
    results = sorted((folder / "out").rglob("*.parquet"))
    compare(case, penstock(case.command, folder, monkeypatch, capfd), folder)
    assert sorted((folder / "out").rglob("*.parquet")) == results


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    arrange(case, folder)
    results = sorted((folder / "out").rglob("*"))
    compare(case, penstock(case.command, folder, monkeypatch, capfd), folder)
    assert sorted((folder / "out").rglob("*")) == results
