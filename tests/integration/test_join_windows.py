"""What is late in a join, and windows of one stream beside a table; small enough to count by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps

SECOND = 1_000_000


def write(path: Path, seconds: list[int]) -> None:
    times = pa.array([second * SECOND for second in seconds], pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"ts": times, "k": [second % 2 for second in seconds]}), path, row_group_size=5)


def run_of(text: str, place: Path) -> Any:
    run = ps.App(master="process").sql(text).start(
        str(place / "checkpoint"), output=str(place / "out"), parallelism=1, batch_rows=8
    )  # fmt: skip
    run.await_end()
    return run


def test_a_join_is_late_by_its_slowest_stream(tmp_path: Path) -> None:
    """The record at second 4 comes after 40 others: late for its own stream, in time for the join."""
    write(tmp_path / "fast.parquet", [*range(10, 50), 4])
    write(tmp_path / "slow.parquet", list(range(50)))
    run = run_of(
        f"""
        CREATE STREAM fast FROM 'parquet:{tmp_path}/fast.parquet' WATERMARK ts DELAY '0 seconds';
        CREATE STREAM slow FROM 'parquet:{tmp_path}/slow.parquet' WATERMARK ts DELAY '1 hour';
        CREATE QUERY joined AS SELECT count(*) AS n
          FROM fast f [RANGE '10 seconds'], slow s [RANGE '10 seconds'] WHERE f.k = s.k;
        CREATE QUERY alone AS SELECT count(*) AS n FROM fast [RANGE '10 seconds'];
        """,
        tmp_path,
    )
    found = {row["window_start"].timestamp(): row["n"] for row in run.arrow("joined").to_pylist()}
    assert found == {0: 1 * 5, 10: 2 * 5 * 5, 20: 2 * 5 * 5, 30: 2 * 5 * 5, 40: 2 * 5 * 5}
    accounts = run.summary()["queries"]
    assert accounts["joined"]["accounting"]["f"]["late"] == 0
    assert accounts["alone"]["accounting"]["late"] == 1


def test_one_stream_beside_a_table_has_any_window(tmp_path: Path) -> None:
    write(tmp_path / "fast.parquet", list(range(100)))
    (tmp_path / "names.csv").write_text("k,name\n0,even\n1,odd\n")
    begin = f"""
        CREATE STREAM s FROM 'parquet:{tmp_path}/fast.parquet' WATERMARK ts DELAY '0 seconds';
        CREATE TABLE names (k BIGINT, name STRING) FROM 'csv:{tmp_path}/names.csv';
        """
    run = run_of(
        begin
        + """
        CREATE QUERY rows AS SELECT name, count(*) AS n FROM s [ROWS 20], names t WHERE s.k = t.k GROUP BY name;
        CREATE QUERY last AS SELECT name, count(*) AS n FROM s [ROWS 7], names t WHERE s.k = t.k
          GROUP BY name EVERY 50 SECONDS;
        CREATE QUERY minutes AS SELECT tb, name, count(*) AS n FROM s, names t WHERE s.k = t.k
          GROUP BY s.ts/1 AS tb, name;
        """,
        tmp_path,
    )
    rows = {name: sorted((r["name"], r["n"]) for r in run.arrow(name).to_pylist()) for name in ("rows", "last")}
    assert rows["rows"] == [("even", 10)] * 5 + [("odd", 10)] * 5
    assert rows["last"] == [("even", 3)] * 2 + [("odd", 4)] * 2  # seconds 43 to 49, and 93 to 99
    minutes = sorted((r["tb"], r["name"], r["n"]) for r in run.arrow("minutes").to_pylist())
    assert minutes == [(0, "even", 30), (0, "odd", 30), (1, "even", 20), (1, "odd", 20)]


def test_last_records_are_the_same_in_parts(tmp_path: Path) -> None:
    """With little memory an instant is cut by keys; which records are the last is known of all of them."""
    rng, rows = np.random.default_rng(6), 3_000
    data = {name: (np.sort(rng.integers(0, 20 * SECOND, rows)), rng.integers(0, 300, rows)) for name in "ab"}
    for name, (times, keys) in data.items():
        table = pa.table({"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "k": keys})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    text = f"""
        CREATE STREAM a FROM 'parquet:{tmp_path}/a.parquet';
        CREATE STREAM b FROM 'parquet:{tmp_path}/b.parquet';
        CREATE QUERY joined AS SELECT count(*) AS n FROM a [ROWS 400], b WHERE a.k = b.k EVERY 10 SECONDS;
        """
    run = ps.App(master="process").sql(text).start(
        str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), task_memory=20_000
    )  # fmt: skip
    run.await_end()
    (times, keys), (others, theirs) = data["a"], data["b"]
    expected = []
    for end in (10 * SECOND, 20 * SECOND):
        last = keys[times < end][-400:]
        held = np.bincount(theirs[(others >= end - 10 * SECOND) & (others < end)], minlength=300)
        expected.append(int(held[last].sum()))
    found = sorted((row["window_end"], row["n"]) for row in run.arrow("joined").to_pylist())
    assert [n for _, n in found] == expected


def test_streams_that_hold_something_at_different_instants(tmp_path: Path) -> None:
    """The second has records in every other window alone."""
    write(tmp_path / "all.parquet", list(range(80)))
    write(tmp_path / "some.parquet", [second for second in range(80) if second // 10 % 2])
    run = run_of(
        f"""
        CREATE STREAM a FROM 'parquet:{tmp_path}/all.parquet';
        CREATE STREAM s FROM 'parquet:{tmp_path}/some.parquet';
        CREATE QUERY joined AS SELECT count(*) AS n FROM a [RANGE '10 seconds'], s [RANGE '10 seconds'] WHERE a.k = s.k;
        """,
        tmp_path,
    )
    found = {row["window_start"].timestamp(): row["n"] for row in run.arrow("joined").to_pylist()}
    assert found == dict.fromkeys((10, 30, 50, 70), 2 * 5 * 5)
