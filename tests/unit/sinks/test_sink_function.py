"""Functions as sinks: a batch is delivered until it is marked; and, in one Spark session, views and writers."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.errors import ConfigError, RunError, StateError
from penstock.sinks.base import Owner, Part, Sink
from penstock.sinks.batches import BatchSink
from penstock.sinks.columnar.write import write_parquet
from penstock.sinks.registry import open_sink
from penstock.sinks.spark import SparkSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = pa.schema([("s", pa.string()), ("n", pa.int64()), ("window_start", pa.timestamp("us", tz="UTC"))])


def rows(*numbers: int) -> pa.Table:
    plain = pa.table([[f"s{n}" for n in numbers], list(numbers), [n * 1_000_000 for n in numbers]], names=SCHEMA.names)
    plain = plain.cast(SCHEMA)
    return plain.set_column(0, "s", plain["s"].dictionary_encode())


def staged(sink: Sink, batch: int, *tables: pa.Table) -> list[Part]:
    task = pickle.loads(pickle.dumps(sink))  # as Spark does
    found = [task.stage(table, batch, part, "x") for part, table in enumerate(tables)]
    return [(aside, final) for aside, final in found]


@dataclass(frozen=True)
class Recorder(BatchSink):
    """Keeps what was delivered; fails when told to."""

    batches: list[tuple[int, int]] = field(default_factory=list)
    failing: list[bool] = field(default_factory=list)

    def write(self, table: pa.Table, path: Path) -> None:
        write_parquet(table, self.schema, path)

    def deliver(self, batch: int, staged: list[str]) -> None:
        self.batches.append((batch, len(staged)))
        if self.failing:
            self.failing.pop()
            raise KeyboardInterrupt  # as good as a kill

    def place(self) -> str:
        return "recorder"


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    sink = Recorder("q", str(tmp_path / "staged" / "q"), SCHEMA)
    sink.prepare(Owner("a", str(tmp_path)), overwrite=False)
    return sink


def test_a_batch_comes_once_and_whole(recorder: Recorder) -> None:
    parts = staged(recorder, 3, rows(1), rows(2))
    recorder.publish(3, parts)
    recorder.publish(3, parts)
    assert recorder.batches == [(3, 2)]


def test_a_batch_cut_short_comes_again(recorder: Recorder) -> None:
    parts = staged(recorder, 3, rows(1), rows(2))
    recorder.failing.append(True)
    with pytest.raises(KeyboardInterrupt):
        recorder.publish(3, parts)
    recorder.publish(3, parts)
    recorder.publish(3, parts)
    assert recorder.batches == [(3, 2), (3, 2)]


def test_a_damaged_mark_is_reported(recorder: Recorder) -> None:
    (Path(recorder.folder) / "delivered").write_text("?")
    with pytest.raises(StateError, match="is damaged"):
        recorder.publish(0, staged(recorder, 0, rows(1)))


def test_a_checkpoint_that_cannot_hold_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        Recorder("q", str(tmp_path / "file" / "q"), SCHEMA).prepare(Owner("a", str(tmp_path)), overwrite=False)


def test_what_cannot_travel_stays_on_the_driver(tmp_path: Path) -> None:
    lock = threading.Lock()  # cannot be pickled

    def guarded(frame: Any, batch: int) -> None:
        with lock:
            pass

    sink = open_sink("q", guarded, tmp_path, SCHEMA, tmp_path)
    sink.prepare(Owner("a", str(tmp_path)), overwrite=False)
    assert Path(staged(sink, 0, rows(1))[0][0]).exists()


def test_functions_writers_and_views_in_a_session(tmp_path: Path, spark: SparkSession) -> None:
    def started(wanted: Any, query: str) -> Sink:
        sink = open_sink(query, wanted, tmp_path / "out", SCHEMA, tmp_path / "check [point]")
        sink.bind(spark)
        sink.prepare(Owner("a", str(tmp_path / "check [point]")), overwrite=False)
        return sink

    _a_function_gets_a_frame(started)
    _a_writer_writes(started, spark, str(tmp_path / "written"))
    _a_view_grows(started, spark)


def _a_function_gets_a_frame(started: Any) -> None:
    seen: list[tuple[int, list[Any], str]] = []

    def collect(frame: DataFrame, batch: int) -> None:
        seen.append((batch, sorted(row.n for row in frame.collect()), frame.schema.simpleString()))
        if len(seen) == 1:
            raise ValueError("not today\nnor tomorrow")

    sink = started(collect, "_hidden")
    parts = staged(sink, 0, rows(1, 2), rows(3))
    with pytest.raises(
        RunError, match=r"the sink function of query '_hidden' failed in batch 0: ValueError: not today\n  hint"
    ):
        sink.publish(0, parts)
    sink.publish(0, parts)
    sink.publish(0, parts)
    assert seen == [(0, [1, 2, 3], "struct<s:string,n:bigint,window_start:timestamp>")] * 2


def _a_writer_writes(started: Any, spark: SparkSession, folder: str) -> None:
    sink = started(SparkSink("json", options={"path": folder}), "written")
    for batch in range(2):
        parts = staged(sink, batch, rows(batch, batch + 10))
        sink.publish(batch, parts)
        sink.publish(batch, parts)
    assert sorted(row.n for row in spark.read.json(folder).collect()) == [0, 1, 10, 11]
    bad = started(SparkSink("no such format"), "bad")
    with pytest.raises(RunError, match="the sink writer of query 'bad' failed in batch 0: "):
        bad.publish(0, staged(bad, 0, rows(1)))


def _a_view_grows(started: Any, spark: SparkSession) -> None:
    sink = started("memory:talkers", "kept")
    assert spark.table("talkers").count() == 0
    for batch in range(2):
        parts = staged(sink, batch, rows(batch))
        sink.publish(batch, parts)
        sink.publish(batch, parts)
        assert [row.n for row in spark.sql("SELECT n FROM talkers ORDER BY n").collect()] == list(range(batch + 1))
    assert sink.results(spark).orderBy("n").toArrow()["s"].to_pylist() == ["s0", "s1"]
    spark.catalog.dropTempView("talkers")
