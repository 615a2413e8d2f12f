"""Queries added and dropped, while files arrive and between runs: the others keep their state, all equal the oracle."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.errors import ConfigError, QueryError
from penstock.logical.resolve.app import resolve_app
from penstock.sources.base import fields
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.oracle.expected import expect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 5, 3_000
FIRST = {
    "sliding": "SELECT a, count(*) AS n FROM s [RANGE '10 seconds' SLIDE '4 seconds'] GROUP BY a",
    "tumbling": "SELECT count(*) AS n FROM s [RANGE '8 seconds']",
    "sofar": "SELECT count(*) AS n, sum(a) AS t FROM s [WINDOW UNTIL NOW] EVERY 7 SECONDS",
}
LATER = {
    "added": "SELECT a, count(*) AS n FROM s [RANGE '10 seconds' SLIDE '5 seconds'] GROUP BY a",
    "newer": "SELECT count(*) AS n FROM s [WINDOW UNTIL NOW] EVERY 6 SECONDS",
    "above": "SELECT max(n) AS most FROM sliding [RANGE '12 seconds']",
}
COUNTED = "SELECT a, count(*) AS n FROM s [ROWS 100 SLIDE 70] GROUP BY a"


@dataclass(frozen=True)
class Place:
    """A folder with a stream's files, a checkpoint and an output."""

    folder: Path
    data: pa.Table

    def put(self, number: int) -> None:
        """One more file, renamed into place."""
        aside = self.folder / "in" / f".part-{number}"
        pq.write_table(self.data.slice(number * ROWS, ROWS), aside)
        aside.rename(self.folder / "in" / f"part-{number}.parquet")

    def app(self, queries: dict[str, str], delay: str = "5 seconds") -> str:
        made = "".join(f"CREATE QUERY {name} AS {text};\n" for name, text in queries.items())
        return f"CREATE STREAM s FROM 'parquet:{self.folder}/in' WATERMARK ts DELAY '{delay}';\n{made}"

    def start(self, spark: SparkSession, queries: dict[str, str], **settings: Any) -> Any:
        places = {"checkpoint": str(self.folder / "checkpoint"), "output": str(self.folder / "out")}
        return (
            ps.App(spark=spark).sql(self.app(queries, settings.pop("delay", "5 seconds"))).start(**(places | settings))
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    dice = np.random.default_rng(20261116)
    count = FILES * ROWS
    times = np.arange(count) * 10_000 + dice.integers(-3_000_000, 3_000_000, count) + 1_600_000_000_000_000
    columns = {
        "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        "a": pa.array(dice.integers(-3, 4, count), pa.int32()),
    }
    (tmp_path / "in").mkdir()
    return Place(tmp_path, pa.table(columns))


def await_rows(run: Any, rows: int) -> None:
    deadline = time.monotonic() + 120
    while run.progress()["rows"] < rows:
        assert time.monotonic() < deadline, run.progress()
        assert not run.await_end(1)


def greatest(data: pa.Table, rows: int) -> int:
    return int(data.column("ts").slice(0, rows).to_numpy().astype("datetime64[us]").astype(np.int64).max())


def test_queries_come_and_go(spark: SparkSession, place: Place) -> None:
    place.put(0)
    run = place.start(spark, FIRST, until="stopped")
    await_rows(run, ROWS)
    for name, select in LATER.items():
        run.add_query(name, select)
    place.put(1)
    await_rows(run, 2 * ROWS)
    run.drop_query("tumbling")
    place.put(2)
    await_rows(run, 3 * ROWS)
    with pytest.raises(QueryError, match="dropped query had it"):
        run.add_query("tumbling", FIRST["tumbling"])
    with pytest.raises(ConfigError, match="'above' reads the results of 'sliding'"):
        run.drop_query("sliding")
    run.stop()
    batches = [batch["rows"] for batch in run.summary()["batches"]]

    place.put(3)
    queries = {name: text for name, text in {**FIRST, **LATER, "counted": COUNTED}.items() if name != "tumbling"}
    place.put(4)
    run = place.start(spark, queries)
    run.await_end()
    summary = run.summary()
    batches += [batch["rows"] for batch in summary["batches"]]
    assert_account_closes(summary)
    since: dict[str, tuple[int | None, int, int]] = dict.fromkeys(LATER, (greatest(place.data, ROWS), ROWS, 1))
    since["counted"] = greatest(place.data, 3 * ROWS), 3 * ROWS, 3
    asked = resolve_app(place.app(queries), "app.sql", lambda uri, options: fields(place.data.schema))
    expected = expect(asked, place.data, batches, since=since)
    for name in queries:
        rows = run.results(name).toArrow().cast(expected.rows[name].schema)
        assert rows.num_rows > 3
        assert_same_rows(rows, expected.rows[name], name)
        assert_same_account(summary["queries"][name]["accounting"], expected.accounts[name], name)


def test_a_refused_folder_leaves_nothing_behind(spark: SparkSession, place: Place) -> None:
    """The next run, with another output, is a first run."""
    place.put(0)
    foreign = place.folder / "busy" / "tumbling"
    foreign.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), foreign / "mine.parquet")
    one = {"tumbling": FIRST["tumbling"]}
    with pytest.raises(ConfigError, match="not results of penstock"):
        place.start(spark, one, output=str(place.folder / "busy"))
    run = place.start(spark, one)
    assert run.await_end()
    assert run.summary()["queries"]["tumbling"]["rows"] > 0
