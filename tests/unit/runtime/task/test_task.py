"""Tasks and merges without Spark: times at the ends of the calendar, reasons of malformed records, early runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.runtime.epoch import Epoch
from penstock.runtime.merge.items import FOREVER
from penstock.runtime.merge.windows import TaskSegments
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task.task import run_task
from penstock.runtime.task.times import FIRST, LAST
from penstock.sharing.plan import unshared_plan
from penstock.sources.base import Split, fields
from penstock.sources.parquet.source import open_parquet
from penstock.state.protocol import TaskReport
from support.closed import blocks_of, closed_rows, due_of, engine_cuts, reading_of


def run(folder: Path, data: pa.Table, query: str, epoch: Epoch, **settings: int) -> tuple[TaskReport, Any]:
    """One task over all rows, and its result."""
    pq.write_table(data, folder / "in.parquet")
    source = open_parquet(str(folder / "in.parquet"), {})
    text = f"CREATE STREAM s FROM 'parquet:x' WATERMARK ts DELAY '1 s' MAX AHEAD '1 hour'; CREATE QUERY q AS {query};"
    app: QuerySet = resolve_app(text, "app.sql", lambda uri, options: fields(source.schema()))
    chosen = TaskSettings(**settings)
    batches = source.read(Split(0, source.rows()), data.column_names, chosen.chunk_rows)
    path = folder / f"{len(list(folder.iterdir()))}.seg"
    reference = run_task(unshared_plan(app, "s"), chosen, epoch, batches, path)
    (asked,) = app.queries
    last = (reference.greatest or 0) // asked.window.slide if asked.window.landmark else None
    segments = TaskSegments(folder, [reference.segment])
    reading = reading_of(asked)
    due = due_of(reading, (asked,), blocks_of(reading, segments), -FOREVER, FOREVER, last)
    rows = closed_rows(due, segments, engine_cuts(due, TaskSettings()))["q"]
    return reference, rows if rows.num_rows else None


def times(*values: int | None) -> pa.Table:
    return pa.table({"ts": pa.array(values, pa.int64()).cast(pa.timestamp("us"))})


def test_windows_of_a_microsecond_anywhere(tmp_path: Path) -> None:
    data = times(LAST - 1, LAST - 5, 7, FIRST)
    reference, result = run(tmp_path, data, "SELECT count(*) AS n FROM s [WINDOW 1 MICROSECOND]", Epoch(0))
    assert reference.account.stream.exact == 4
    starts = result["window_start"].cast(pa.int64()).to_pylist()
    assert sorted(starts) == [FIRST, 7, LAST - 5, LAST - 1]
    assert result["window_end"].to_pylist()[starts.index(LAST - 1)].year == 9999


@pytest.mark.parametrize("window", ["1 DAY", "10 HOURS", "7 DAYS"])
def test_every_window_lies_in_the_calendar(window: str, tmp_path: Path) -> None:
    """Of the last and the first days, a second apart from the edges: what is counted can be shown."""
    day = 86_400_000_000
    data = times(*(LAST - day * n - 1 for n in range(30)), *(FIRST + day * n + 1 for n in range(30)))
    reference, result = run(tmp_path, data, f"SELECT count(*) AS n FROM s [RANGE {window} SLIDE 5 HOURS]", Epoch(0))
    found = reference.account.stream
    assert found.exact + found.malformed == 60
    assert 45 < found.exact < 60
    assert reference.account.malformed == {"ts has a window outside the years 1 to 9999": found.malformed}
    ends = [(row["window_start"].year, row["window_end"].year) for row in result.to_pylist()]
    assert {year for pair in ends for year in pair} == {1, 9999}


def test_every_malformed_record_has_a_reason(tmp_path: Path) -> None:
    hour = 3_600_000_000
    data = times(5, None, (1 << 63) - 1, -(1 << 63), hour + 11, hour + 10)
    reference, result = run(tmp_path, data, "SELECT count(*) AS n FROM s [WINDOW 1 MINUTE]", Epoch(1, greatest=10))
    account = reference.account
    assert account.malformed == {
        "ts is NULL": 1,
        "ts has a window outside the years 1 to 9999": 2,
        "ts is further ahead than MAX AHEAD": 1,
    }
    assert account.stream == account.queries["q"]
    assert (account.stream.exact, account.stream.malformed) == (2, 4)
    assert reference.greatest == hour + 10
    assert sorted(result["n"].to_pylist()) == [1, 1]


def test_late_records_are_dropped_and_counted(tmp_path: Path) -> None:
    minute = 60_000_000
    data = times(0, minute - 1, minute, 2 * minute)
    reference, result = run(tmp_path, data, "SELECT count(*) AS n FROM s [WINDOW 1 MINUTE]", Epoch(1, watermark=minute))
    assert reference.account.stream.late == 2
    assert sorted(result["n"].to_pylist()) == [1, 1]


def test_a_large_table_is_written_in_pieces_and_runs(tmp_path: Path) -> None:
    rows = 300_000
    data = pa.table(
        {"ts": pa.array([0] * rows).cast(pa.timestamp("us")), "k": pa.array([f"k{i % 200_000}" for i in range(rows)])}
    )
    query = "SELECT k, count(*) AS n, max(k) AS m FROM s [WINDOW 1 MINUTE] GROUP BY k"
    for memory in (1 << 28, 1 << 21):
        folder = tmp_path / str(memory)
        folder.mkdir()
        _, result = run(folder, data, query, Epoch(0), task_memory=memory)
        assert result.num_rows == 200_000
        assert sum(result["n"].to_pylist()) == rows
        assert result["k"].cast(pa.string()).equals(result["m"].cast(pa.string()))


# -- which tuples reach which window


def account(folder: Path, data: pa.Table, query: str, epoch: Epoch, **settings: int) -> tuple[int, int, int]:
    """Exact, late and filtered tuples."""
    told, _ = run(folder, data, query, epoch, **settings)
    mine = told.account.queries["q"]
    assert told.account.stream == mine
    return mine.exact, mine.late, mine.filtered


def test_tuples_in_gaps_are_filtered(tmp_path: Path) -> None:
    data = times(0, 2_999_999, 3_000_000, 9_999_999, 10_000_000, -1, -10_000_000)
    query = "SELECT count(*) AS n FROM s [RANGE '3 seconds' SLIDE '10 seconds']"
    assert account(tmp_path, data, query, Epoch(0)) == (4, 0, 3)
    assert account(tmp_path, data, query, Epoch(1, watermark=3_000_000)) == (1, 3, 3)  # late is judged after that


def test_a_tuple_is_late_when_all_its_windows_are_closed(tmp_path: Path) -> None:
    """Windows [k, k + 3): at watermark 5 those from k = 3 on are open."""
    data = times(*range(8))
    query = "SELECT count(*) AS n FROM s [RANGE '3 us' SLIDE '1 us']"
    assert account(tmp_path, data, query, Epoch(1, watermark=5)) == (5, 3, 0)


def test_a_landmark_window_begins_at_the_slide_of_the_first_tuple(tmp_path: Path) -> None:
    query = "SELECT count(*) AS n FROM s [WINDOW UNTIL NOW] EVERY 10 MICROSECONDS"
    data = times(None, 25, 19, 20, 7, 99)
    for chunk_rows in (1, 2, 100):
        assert account(tmp_path, data, query, Epoch(0), chunk_rows=chunk_rows) == (3, 2, 0)
        assert account(tmp_path, data, query, Epoch(1, first=0, watermark=50), chunk_rows=chunk_rows) == (5, 0, 0)


def test_a_task_tells_its_first_least_and_greatest_time(tmp_path: Path) -> None:
    data = times(None, 25, 19, 99, 20)
    query = "SELECT count(*) AS n FROM s [WINDOW 1 MICROSECOND]"
    told, _ = run(tmp_path, data, query, Epoch(0), chunk_rows=2)
    assert (told.first, told.least, told.greatest) == (25, 19, 99)
    told, _ = run(tmp_path, times(None, None), query, Epoch(0))
    assert (told.first, told.least, told.greatest) == (None, None, None)
    assert told.segment.panes == {}


def test_positions_go_on_from_where_the_task_begins(tmp_path: Path) -> None:
    """Windows of rows count records of the stream; malformed ones have a place there, too."""
    data = times(*range(10), None)
    query = "SELECT count(*) AS n FROM s [ROWS 4]"
    for chunk_rows in (1, 3, 100):
        told, _ = run(tmp_path, data, query, Epoch(0, row=103), chunk_rows=chunk_rows)
        assert (103 // 4, 112 // 4) in told.segment.panes.values()
        assert told.places == {"ts is NULL": (113,)}


def test_an_added_askedcounts_from_its_first_window_on(tmp_path: Path) -> None:
    data = times(*range(40))
    origins = {"q": (12, 1007)}
    by_time, by_rows = "SELECT count(*) AS n FROM s [RANGE '5 us']", "SELECT count(*) AS n FROM s [ROWS 5]"
    assert account(tmp_path, data, by_time, Epoch(3, row=1000, origins=origins)) == (25, 15, 0)
    assert account(tmp_path, data, by_rows, Epoch(3, row=1000, origins=origins)) == (30, 10, 0)
    landmark = "SELECT count(*) AS n FROM s [WINDOW UNTIL NOW] EVERY 5 us"
    assert account(tmp_path, data, landmark, Epoch(3, first=3, row=1000, origins=origins)) == (25, 15, 0)
