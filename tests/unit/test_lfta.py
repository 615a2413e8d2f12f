"""Tasks and merges without Spark: times at the ends of the calendar, reasons of malformed records, early runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.logical.query import QuerySet
from penstock.logical.resolve import resolve_app
from penstock.runtime.closing import Segments, Setting, merge_item
from penstock.runtime.epoch import Epoch
from penstock.runtime.lfta import run_task
from penstock.runtime.merge_plan import FOREVER, MergeItem
from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import unshared_plan
from penstock.sources.base import Split, fields
from penstock.sources.parquet import open_parquet


def run(folder: Path, data: pa.Table, query: str, epoch: Epoch, **settings: int) -> tuple[dict[str, Any], pa.Table]:
    """One task over all rows, and its result."""
    pq.write_table(data, folder / "in.parquet")
    source = open_parquet(str(folder / "in.parquet"), {})
    text = f"CREATE STREAM s FROM 'parquet:x' WATERMARK ts DELAY '1 s' MAX AHEAD '1 hour'; CREATE QUERY q AS {query};"
    app: QuerySet = resolve_app(text, "app.sql", lambda uri, options: fields(source.schema()))
    chosen = TaskSettings(**settings)
    batches = source.read(Split(0, source.rows()), data.column_names, chosen.chunk_rows)
    path = folder / "0.seg"
    reference = run_task(unshared_plan(app, "s"), chosen, epoch, batches, path)
    item = MergeItem("q", 0, -FOREVER, FOREVER, 0, chosen.slots)
    return reference, merge_item(app.queries[0], item, Segments(folder, [reference["segment"]]), Setting("ts"))


def times(*values: int | None) -> pa.Table:
    return pa.table({"ts": pa.array(values, pa.int64()).cast(pa.timestamp("us"))})


def test_windows_of_a_microsecond_anywhere(tmp_path: Path) -> None:
    data = times((1 << 62) + 5, (1 << 62) - 5, 7, -(1 << 62) - 5)
    reference, result = run(tmp_path, data, "SELECT count(*) AS n FROM s [WINDOW 1 MICROSECOND]", Epoch(0, None, None))
    assert reference["account"]["stream"]["exact"] == 4
    starts = result["window_start"].cast(pa.int64()).to_pylist()
    assert sorted(starts) == [-(1 << 62) - 5, 7, (1 << 62) - 5, (1 << 62) + 5]


def test_every_malformed_record_has_a_reason(tmp_path: Path) -> None:
    hour = 3_600_000_000
    data = times(5, None, (1 << 63) - 1, -(1 << 63), hour + 11, hour + 10)
    reference, result = run(tmp_path, data, "SELECT count(*) AS n FROM s [WINDOW 1 MINUTE]", Epoch(1, None, 10))
    account = reference["account"]
    assert account["malformed"] == {
        "ts is NULL": 1,
        "ts has a window beyond the calendar": 2,
        "ts is further ahead than MAX AHEAD": 1,
    }
    assert account["stream"] == account["queries"]["q"]
    assert (account["stream"]["exact"], account["stream"]["malformed"]) == (2, 4)
    assert reference["greatest"] == hour + 10
    assert sorted(result["n"].to_pylist()) == [1, 1]


def test_late_records_are_dropped_and_counted(tmp_path: Path) -> None:
    minute = 60_000_000
    data = times(0, minute - 1, minute, 2 * minute)
    reference, result = run(tmp_path, data, "SELECT count(*) AS n FROM s [WINDOW 1 MINUTE]", Epoch(1, minute, None))
    assert reference["account"]["stream"]["late"] == 2
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
        _, result = run(folder, data, query, Epoch(0, None, None), task_memory=memory)
        assert result.num_rows == 200_000
        assert sum(result["n"].to_pylist()) == rows
        assert result["k"].cast(pa.string()).equals(result["m"].cast(pa.string()))
