"""A real connection log: all 78 pairs of 13 attributes per day, row for row against DuckDB; late data too.

Uses the Zeek log beside the repository (`../shared/data`); skipped where that folder is absent.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from penstock.testing.asserts import assert_account_closes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = Path(__file__).parents[3] / "shared" / "data" / "flows" / "zeek_conn_2022-03.parquet"
ATTRIBUTES = (
    "orig_h", "orig_p", "resp_h", "resp_p", "proto", "service", "conn_state", "local_orig", "local_resp", "history",
    "orig_pkts", "resp_pkts", "missed_bytes",
)  # fmt: skip
PAIRS = tuple(itertools.combinations(ATTRIBUTES, 2))
ROWS = 1_847_233

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
def test_all_78_pairs_per_day_equal_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    import penstock as ps

    run = ps.App(spark).sql(app_text(PAIRS)).start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"))
    run.await_end()
    summary = run.summary()
    assert_account_closes(summary)
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
