"""DataFrames as streams, from run to run: a streaming one goes on where it stopped, queries come and go, and what has
no meaning over rows without an order is refused. (`test_formats` has the same records as files and as DataFrames.)"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ConfigError, QueryError, StateError
from penstock.logical.resolve.app import resolve_app
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.oracle.expected import expect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.runtime.run.run import Run

ROWS = 2_000  # of a file
START = 1_700_000_000_000_000
COLUMNS = "(ts TIMESTAMP, host INET, size BIGINT)"
QUERIES = {
    "hosts": "SELECT host, count(*) AS n, sum(size) AS total FROM s [RANGE '5 seconds'] GROUP BY host",
    "slides": "SELECT host/16 AS net, max(size) AS most FROM s [RANGE '9 seconds' SLIDE '2 seconds'] GROUP BY host/16",
    "since": "SELECT count(*) AS n FROM s [WINDOW UNTIL NOW] EVERY 4 SECONDS",
    "most": "SELECT max(n) AS n FROM hosts [RANGE '15 seconds']",
}
ADDED = {"added": "SELECT host, count(*) AS n FROM s [RANGE '6 seconds' SLIDE '3 seconds'] GROUP BY host"}
OF_ROWS = "SELECT count(*) AS n FROM s [ROWS 100]"
HOSTS = ("10.0.0.1", "10.0.7.7", "10.9.0.1", "2001:db8::1", "2001:db8:1::2", "::ffff:10.0.0.1")


def make_file(number: int) -> pa.Table:
    """Ten seconds, some records late; the first of all is the earliest, where landmark windows begin."""
    dice = np.random.default_rng(number)
    times = START + number * 10_000_000 + np.arange(ROWS) * 5_000 + dice.integers(0, 1_500_000, ROWS)
    times -= np.where(dice.random(ROWS) < 0.05, dice.integers(0, 12_000_000, ROWS), 0)
    times = np.maximum(times, START)
    chosen = pa.array(dice.integers(0, len(HOSTS), ROWS), mask=dice.random(ROWS) < 0.05)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC"), mask=dice.random(ROWS) < 0.01),
            "host": pa.array(HOSTS).take(chosen),
            "size": pa.array(dice.integers(0, 10**9, ROWS), mask=dice.random(ROWS) < 0.05),
        }
    )


@dataclass
class Stage:
    """A folder that Spark watches."""

    spark: SparkSession
    place: Path
    files: int = 0

    def put(self) -> None:
        folder = self.place / "in"
        folder.mkdir(exist_ok=True)
        aside = folder / f".{self.files}.parquet"
        pq.write_table(make_file(self.files), aside)
        os.utime(aside, (self.files, self.files))  # Spark takes files in the order of their times
        aside.rename(folder / f"{self.files}.parquet")
        self.files += 1

    def data(self) -> pa.Table:
        return pa.concat_tables([make_file(number) for number in range(self.files)])

    def frame(self) -> DataFrame:
        folder = str(self.place / "in")
        schema = self.spark.read.parquet(folder).schema
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)

    def started(self, queries: dict[str, str], until: str) -> Run:
        import penstock as ps

        app = ps.App(self.spark).stream("s", self.frame(), types={"host": "INET"}, delay="1 second")
        for name, text in queries.items():
            app.query(name, text)
        run: Run = app.start(str(self.place / "ckpt"), output=str(self.place / "out"), until=until)
        return run

    def read_all(self, run: Run) -> None:
        deadline = time.monotonic() + 300
        while run.progress()["rows"] < self.files * ROWS:
            assert time.monotonic() < deadline, run.progress()
            run.await_end(1)


@pytest.fixture
def stage(spark: SparkSession, tmp_path: Path) -> Stage:
    return Stage(spark, tmp_path)


def check(stage: Stage, run: Run, batches: list[int], since: dict[str, tuple[int, int, int]]) -> None:
    summary, names = run.summary(), QUERIES | (ADDED if since else {})
    statements = [f"CREATE STREAM s {COLUMNS} FROM 'parquet:x' WATERMARK ts DELAY '1 second';"]
    statements += [f"CREATE QUERY {name} AS {text};" for name, text in names.items()]
    expected = expect(resolve_app("\n".join(statements), "app", lambda *_: ()), stage.data(), batches, since=since)
    assert expected.accounts["hosts"].late > 0 < expected.accounts["hosts"].malformed
    assert_account_closes(summary)
    assert set(summary["queries"]) == set(names)
    for name, shown in summary["queries"].items():
        found = run.results(name).toArrow().cast(expected.rows[name].schema)
        assert_same_rows(found, expected.rows[name], name)
        assert_same_account(shown["accounting"], expected.accounts[name], name)
        assert shown["rows"] == expected.rows[name].num_rows > 0


def rows_of(summary: dict[str, Any]) -> list[int]:
    return [batch["rows"] for batch in summary["batches"]]


def test_a_streaming_frame_goes_on_where_it_stopped(stage: Stage) -> None:
    """Two files, then a query more, then another file; stopped; one file that comes meanwhile; to the end."""
    stage.put()
    stage.put()
    run = stage.started(QUERIES, "stopped")
    stage.read_all(run)
    times = stage.data().column("ts").cast(pa.int64()).drop_null().to_numpy()
    since = {"added": (int(times.max()), 2 * ROWS, run.progress()["batch"] + 1)}
    run.add_query("added", ADDED["added"])
    stage.put()
    stage.read_all(run)
    run.stop()
    batches = rows_of(run.summary())
    stage.put()
    again = stage.started(QUERIES | ADDED, "end")
    again.await_end()
    batches += rows_of(again.summary())
    assert again.summary()["ended"] is True
    check(stage, again, batches, since)
    # Once it has ended there is nothing more to do, whatever has come since.
    before = again.results("hosts").count()
    stage.put()
    last = stage.started(QUERIES | ADDED, "end")
    last.await_end()
    assert last.results("hosts").count() == before
    assert last.summary()["queries"] == again.summary()["queries"]


def test_rows_without_an_order_have_no_windows_of_rows(stage: Stage) -> None:
    import penstock as ps

    stage.put()
    for frame in (stage.frame(), stage.spark.read.parquet(str(stage.place / "in"))):
        app = ps.App(stage.spark).stream("s", frame, types={"host": "INET"}).query("of_rows", OF_ROWS)
        with pytest.raises(QueryError, match="window of rows"):
            app.start(str(stage.place / "ckpt"))


def test_windows_of_rows_cannot_be_added_either(stage: Stage) -> None:
    stage.put()
    run = stage.started(QUERIES, "stopped")
    try:
        stage.read_all(run)
        with pytest.raises(QueryError, match="window of rows"):
            run.add_query("of_rows", OF_ROWS)
    finally:
        run.stop()


def test_a_frame_of_other_columns_is_refused(stage: Stage) -> None:
    import penstock as ps

    stage.put()
    run = stage.started(QUERIES, "end")
    run.await_end()
    other = stage.frame().selectExpr("ts", "host", "size", "1 AS more")
    app = ps.App(stage.spark).stream("s", other, types={"host": "INET"}, delay="1 second")
    for name, text in QUERIES.items():
        app.query(name, text)
    with pytest.raises(StateError, match="stream 's' differs"):
        app.start(str(stage.place / "ckpt"), output=str(stage.place / "out"))


def test_a_table_that_is_not_there(spark: SparkSession) -> None:
    import penstock as ps

    with pytest.raises(ConfigError, match="Spark has no table 'no_such_view'"):
        ps.App(spark).sql("CREATE STREAM s FROM 'spark:no_such_view'; CREATE QUERY q AS SELECT count(*) AS n FROM s "
                          "[RANGE '1 second'];")  # fmt: skip
