"""A real connection log: all 78 pairs of 13 attributes per day, row for row against DuckDB; late data too.

Uses the Zeek log beside the repository (`../shared/data`); skipped where that folder is absent.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.oracle.expected import expect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = Path(__file__).parents[3] / "shared" / "data" / "flows" / "zeek_conn_2022-03.parquet"
ATTRIBUTES = (
    "orig_h", "orig_p", "resp_h", "resp_p", "proto", "service", "conn_state", "local_orig", "local_resp", "history",
    "orig_pkts", "resp_pkts", "missed_bytes",
)  # fmt: skip
PAIRS = tuple(itertools.combinations(ATTRIBUTES, 2))
ROWS = 1_847_233

# All kinds of windows over the log, whose records come by the end of a connection: up to days out of order.
LATE_COLUMNS = {"ts": "TIMESTAMP", "proto": "STRING", "conn_state": "STRING", "orig_ip_bytes": "BIGINT"}
LATE_QUERIES = {
    "days": "SELECT proto, conn_state, count(*) AS n, sum(orig_ip_bytes) AS b FROM conn [RANGE '1 day'] "
    "GROUP BY proto, conn_state",
    "hours": "SELECT conn_state, count(*) AS n, max(orig_ip_bytes) AS m FROM conn [RANGE '1 hour'] GROUP BY conn_state",
    "slides": "SELECT proto, count(*) AS n, sum(orig_ip_bytes) AS b FROM conn [RANGE '6 hours' SLIDE '1 hour'] "
    "GROUP BY proto",
    "since": "SELECT conn_state, count(*) AS n FROM conn [WINDOW UNTIL NOW] GROUP BY conn_state EVERY 1 DAY",
    "rows": "SELECT proto, count(*) AS n, min(orig_ip_bytes) AS l FROM conn [ROWS 100000] GROUP BY proto",
}
LATE_KEYS = {"days": ["proto", "conn_state"], "hours": ["conn_state"], "slides": ["proto"], "since": ["conn_state"]}
LATE_BATCH = 65_536

pytestmark = pytest.mark.skipif(not LOG.exists(), reason=f"no Zeek log at {LOG.parent}")


def app_text(pairs: tuple[tuple[str, str], ...], types: str = "") -> str:
    queries = [
        f"CREATE QUERY q{i} AS SELECT {a}, {b}, count(*) AS n, sum(orig_ip_bytes) AS s "
        f"FROM conn [RANGE '1 day' SLIDE '1 day'] GROUP BY {a}, {b};"
        for i, (a, b) in enumerate(pairs)
    ]
    return f"CREATE STREAM conn {types} FROM 'parquet:{LOG}';\n" + "\n".join(queries)


def digest(columns: str, source: str) -> tuple[int, int]:
    """Number of rows and the sum of their hashes: equal for equal multisets of rows."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        text = f"SELECT count(*), sum(hash({columns})::HUGEINT) FROM ({source})"
        return connection.sql(text).fetchall()[0]


def compare(pairs: tuple[tuple[str, str], ...], output: Path) -> None:
    for i, (a, b) in enumerate(pairs):
        columns = f"{a}, {b}, n, s, w"
        ours = digest(columns, f"SELECT *, epoch_us(window_start) AS w FROM '{output}/q{i}/*.parquet'")
        theirs = digest(
            columns,
            f"SELECT {a}, {b}, count(*) AS n, sum(orig_ip_bytes)::BIGINT AS s, "
            f"epoch_us(time_bucket(INTERVAL 1 DAY, ts)) AS w FROM '{LOG}' GROUP BY ALL",
        )
        assert ours == theirs, (a, b)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "memory", "most"), [("auto", None, 0.6), ("tree", 256 << 20, 0.4), ("tree", 2 << 20, 0.6)]
)
def test_all_78_pairs_per_day_equal_duckdb(
    plan: str, memory: int | None, most: float, spark: SparkSession, tmp_path: Path
) -> None:
    """With at most so many of the hash operations that it takes without sharing: 0.4 with ample memory."""
    import penstock as ps

    app = ps.App(spark).sql(app_text(PAIRS))
    run = app.start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), plan=plan, memory=memory)
    run.await_end()
    summary = run.summary()
    assert_account_closes(summary)
    operations = summary["work"]["hash_operations"] / (len(PAIRS) * ROWS)
    print(f"{plan} in {memory}: {operations:.3f} of the hash operations")
    assert operations <= most
    for query in summary["queries"].values():
        assert query["accounting"]["exact"] == query["accounting"]["input"] == ROWS
        assert query["windows"] == 20
    compare(PAIRS, tmp_path / "out")


def test_three_pairs_with_addresses_equal_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    """The same with addresses as INET: text in, canonical text out."""
    import penstock as ps

    pairs = (("orig_h", "resp_p"), ("resp_h", "service"), ("history", "orig_pkts"))
    types = (
        "(ts TIMESTAMP, orig_h INET, resp_h INET, resp_p INT, service STRING, history STRING, orig_pkts BIGINT, "
        "orig_ip_bytes BIGINT)"
    )
    app = ps.App(spark).sql(app_text(pairs, types))
    run = app.start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), batch_rows=700_000)
    run.await_end()
    assert_account_closes(run.summary())
    compare(pairs, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("delay", ["0 seconds", "1 hour", "1 day"])
def test_late_records_equal_the_oracle(delay: str, spark: SparkSession, tmp_path: Path) -> None:
    """Late is what the logged batches make so; every window is there once, every record accounted for."""
    import penstock as ps

    columns = ", ".join(f"{name} {kind}" for name, kind in LATE_COLUMNS.items())
    queries = "\n".join(f"CREATE QUERY {name} AS {text};" for name, text in LATE_QUERIES.items())
    text = f"CREATE STREAM conn ({columns}) FROM 'parquet:{LOG}' WATERMARK ts DELAY '{delay}';\n{queries}"
    run = ps.App(spark).sql(text).start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), batch_rows=LATE_BATCH)
    run.await_end()
    summary = run.summary()
    batches = [batch["rows"] for batch in summary["batches"]]
    assert len(batches) > 20
    data = pq.read_table(LOG, columns=list(LATE_COLUMNS))
    expected = expect(resolve_app(text, "app", lambda *_: ()), data, batches)
    assert expected.accounts["hours"].late > expected.accounts["days"].late > 0
    assert_account_closes(summary)
    assert_same_account(summary["accounting"], expected.stream, "the stream")
    found = faults.collect(tmp_path / "out")
    assert found.leftovers == ()
    for name in LATE_QUERIES:
        rows, shown = found.rows[name], summary["queries"][name]
        assert_same_rows(rows.cast(expected.rows[name].schema), expected.rows[name], f"{name}, delay {delay}")
        assert_same_account(shown["accounting"], expected.accounts[name], f"{name}, delay {delay}")
        assert shown["rows"] == rows.num_rows
        if name in LATE_KEYS:  # windows of rows are told apart by their times, which two of them may share
            once = rows.group_by(["window_start", "window_end", *LATE_KEYS[name]]).aggregate([])
            assert once.num_rows == rows.num_rows
