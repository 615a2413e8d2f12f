"""DataFrames as streams, without Spark: decisions that stay, tasks over partitions, a batch in a thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import RunError, StateError
from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.runtime.batch.frames import FrameFeed, frame_task
from penstock.runtime.batch.outcome import heard, told
from penstock.runtime.engine.once import Once
from penstock.runtime.engine.spark import SparkExecutor
from penstock.runtime.epoch import Epoch
from penstock.runtime.run.changes import adopt
from penstock.runtime.settings import TaskSettings
from penstock.sharing.options import NONE, Planning
from penstock.sharing.plan import unshared_plan, unshared_plans
from penstock.state.data import to_data
from penstock.state.garbage import DECISIONS, SEGMENTS
from penstock.state.manifest import first_manifest
from penstock.state.protocol import StreamOffset, StreamState, TaskReport
from support.reports import task_report

APP = """
CREATE STREAM s (ts TIMESTAMP, "a b" INT, c INT) FROM 'frame:s' WATERMARK ts DELAY '1 s';
CREATE QUERY q AS SELECT "a b", count(*) AS n FROM s [RANGE '1 minute'] GROUP BY "a b";
CREATE QUERY l AS SELECT count(*) AS n FROM s [WINDOW UNTIL NOW] EVERY 1 MINUTE;
"""
MINUTE = 60_000_000
NO_SPARK: Any = None
EXECUTOR = SparkExecutor(NO_SPARK)  # collects what frames below hand over


def app() -> QuerySet:
    return resolve_app(APP, "app.sql", lambda uri, options: ())


def rows(*times: int | None) -> pa.RecordBatch:
    n = len(times)
    stamps = pa.array(times, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.RecordBatch.from_pydict({"ts": stamps, "a b": pa.array(range(n), pa.int32())})


@dataclass
class Frame:
    """As much of a DataFrame as a feed uses: partitions of Arrow batches."""

    partitions: list[list[pa.RecordBatch]]
    chosen: tuple[str, ...] = ()

    def select(self, *names: str) -> Frame:
        self.chosen = names
        return self

    def mapInArrow(self, run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str) -> Any:
        assert schema == "reference string"
        made = [batch for partition in self.partitions for batch in run(iter(partition))]
        told = [SimpleNamespace(reference=text) for batch in made for text in batch.column(0).to_pylist()]
        return SimpleNamespace(collect=lambda: told)


@pytest.fixture
def feed(tmp_path: Path) -> FrameFeed:
    adopt(tmp_path, app(), Planning(NONE), lambda since: unshared_plans(app()), {"q": "/out/q", "l": "/out/l"})
    (tmp_path / SEGMENTS).mkdir()
    return FrameFeed(EXECUTOR, tmp_path, "s", TaskSettings(chunk_rows=2))


# -- decisions


def test_a_decision_stays_whatever_changes(feed: FrameFeed) -> None:
    first = feed.decision(0, first_manifest())
    assert to_data(first) == {
        "n": 1, "plan": 0, "end": False, "origins": {}, "joined": {}, "tables": {},
        "streams": {"s": {"row": 0, "end": False, "wm": None, "max": None, "first": None}},
    }  # fmt: skip
    fewer = QuerySet(app().streams, app().queries[:1])
    adopt(feed.checkpoint, fewer, Planning(NONE), lambda since: unshared_plans(fewer), {})
    assert feed.decision(0, first_manifest()) == first
    other = FrameFeed(EXECUTOR, feed.checkpoint, "s", feed.settings)
    assert other.decision(0, first_manifest()) == first


def test_an_end_that_was_never_committed_does_not_end_later_data(feed: FrameFeed) -> None:
    """Killed before the manifest of the end, Spark finds more data and gives it the same number."""
    assert feed.end_batch()
    assert feed.decision(0, first_manifest()).end is True
    later = FrameFeed(EXECUTOR, feed.checkpoint, "s", feed.settings)
    assert later.decision(0, first_manifest()).end is False


def test_a_decision_follows_the_manifest_before(feed: FrameFeed) -> None:
    offset = feed.decision(0, first_manifest())
    known = StreamState(30, 5, 9, 1)
    before = replace(first_manifest(), batch=0, offset=offset, streams={"s": known})
    assert feed.end_batch()
    second = feed.decision(1, before)
    assert (second.n, second.end) == (2, True)
    assert second.streams["s"] == StreamOffset(30, True, 5, 9, 1)


def test_a_damaged_decision_is_noticed(feed: FrameFeed) -> None:
    feed.decision(0, first_manifest())
    (path,) = (feed.checkpoint / DECISIONS).iterdir()
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    with pytest.raises(StateError, match=r"decision .*00000000\.json is damaged"):
        feed.decision(0, first_manifest())


# -- tasks


def test_tasks_read_the_columns_that_are_used(feed: FrameFeed) -> None:
    frame: Any = Frame([[rows(3 * MINUTE, 2 * MINUTE), rows(9 * MINUTE)], [], [rows(MINUTE + 5, None)]])
    offset = feed.decision(0, first_manifest())
    tasks, moved = feed.tasks(frame, offset)
    assert frame.chosen == ("`ts`", "`a b`")
    assert [task.rows for task in tasks] == [3, 0, 2]
    # Rows have no order: the first tuple is the least of the first batch, and nothing before it is late.
    assert [task.first for task in tasks] == [MINUTE + 5] * 3
    assert [task.account.queries["l"].exact for task in tasks] == [3, 0, 1]
    assert (offset.streams["s"].row, moved.streams["s"].row) == (0, 5)
    assert {task.stream for task in tasks} == {"s"}
    assert len(list((feed.checkpoint / SEGMENTS).iterdir())) == 3


def test_without_rows_there_are_no_tasks(feed: FrameFeed) -> None:
    offset = feed.decision(0, first_manifest())
    assert feed.tasks(None, offset) == ([], offset)


def test_tuples_before_the_landmark_are_late_in_later_batches(feed: FrameFeed) -> None:
    plan = unshared_plan(app(), "s")
    epoch = Epoch(1, first=5 * MINUTE, ordered=False)
    run = frame_task(plan, feed.settings, epoch, feed.checkpoint)
    (batch,) = run(iter([rows(4 * MINUTE, 5 * MINUTE, 6 * MINUTE)]))
    (report,) = heard(batch.column(0).to_pylist(), TaskReport)
    assert (report.account.queries["l"].late, report.account.queries["q"].late) == (1, 0)


def test_errors_of_tasks_travel_as_data(feed: FrameFeed) -> None:
    run = frame_task(unshared_plan(app(), "s"), feed.settings, Epoch(0), feed.checkpoint / "nowhere")
    (batch,) = run(iter([rows(1)]))
    text = batch.column(0)[0].as_py()
    assert "error" in json.loads(text)
    with pytest.raises(RunError, match=r"task 0 failed: .*No such file"):
        heard([text], TaskReport)


def test_reports_come_in_the_order_of_tasks() -> None:
    texts = [told(number, lambda n=number: task_report("s", n), str) for number in (10, 2, 1)]
    assert [task.rows for task in heard(texts, TaskReport)] == [1, 2, 10]


# -- the only batch of a static DataFrame


def test_a_batch_runs_once_and_is_awaited() -> None:
    go, done = threading.Event(), []

    def work() -> None:
        go.wait()
        done.append(1)

    once = Once(work)
    assert once.isActive
    assert once.status == {"isTriggerActive": True}
    assert not once.awaitTermination(0)
    go.set()
    assert once.awaitTermination()
    assert (once.isActive, done) == (False, [1])
    assert once.awaitTermination(1)


def test_an_error_is_raised_where_the_batch_is_awaited() -> None:
    def work() -> None:
        raise RunError("no more room", "make some")

    once = Once(work)
    for _ in range(2):
        with pytest.raises(RunError, match="no more room"):
            once.awaitTermination()
    once.stop()


def test_a_stop_waits_for_the_end_of_the_batch() -> None:
    go, done = threading.Event(), []

    def work() -> None:
        go.wait()
        done.append(1)

    once = Once(work)
    threading.Timer(0.05, go.set).start()
    once.stop()
    assert done == [1]
