"""Joins of files without windows, as `penstock query` has them, beside DuckDB: odd corners of SELECT and ON."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps

QUERIES = (
    "SELECT count(*) AS n FROM {o} o, {c} c WHERE o.item = c.item AND o.price > 1000",
    "SELECT count(*) AS n, sum(c.page) AS s FROM {o} o JOIN {c} c ON o.item = c.item",
    "SELECT o.shop, count(DISTINCT page) AS p, avg(price) AS a FROM {o} o, {c} c WHERE o.item = c.item GROUP BY o.shop",
    "SELECT o.item, count(*) AS n FROM {o} o, {c} c WHERE o.item = c.item AND o.price > 1000 GROUP BY o.item",
    "SELECT x.shop, y.shop AS z, count(*) FROM {o} x, {o} y WHERE x.item = y.item AND x.price < y.price GROUP BY 1, 2",
    "SELECT o.price + c.page AS both_, count(*) AS n FROM {o} o, {c} c WHERE o.item = c.item GROUP BY o.price + c.page",
    "SELECT o.price, i.name FROM {o} o LEFT JOIN items i ON o.price > 25",
    "SELECT i.name, count(*) AS n FROM {o} o LEFT JOIN items i ON o.item = i.item AND o.price > 25 GROUP BY i.name",
    "SELECT i.name, count(*) AS n FROM {o} o, items i WHERE o.item < i.item GROUP BY i.name",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(2)

    def column(most: int, rows: int) -> pa.Array:
        return pa.array(rng.integers(0, most, rows), mask=rng.random(rows) < 0.1)

    orders = {"item": column(12, 90), "shop": column(3, 90), "price": column(50, 90)}
    pq.write_table(pa.table(orders), folder / "o.parquet")
    pq.write_table(pa.table({"item": column(12, 70), "page": column(5, 70)}), folder / "c.parquet")
    (folder / "items.csv").write_text("item,name\n1,a\n2,b\n2,c\n7,d\n")
    return folder


@pytest.mark.parametrize("text", QUERIES)
def test_files_are_joined_as_duckdb_joins_them(place: Path, text: str, tmp_path: Path) -> None:
    files = {name: f"'{place}/{name}.parquet'" for name in "oc"}
    database = duckdb.connect()
    database.execute(f"CREATE TABLE items AS FROM '{place}/items.csv'")
    expected = database.execute(text.format(**files)).fetchall()
    app = ps.App(master="process").selects(
        f"CREATE TABLE items (item BIGINT, name STRING) FROM 'csv:{place}/items.csv'; {text.format(**files)}"
        if "items" in text
        else text.format(**files)
    )
    run = app.start(str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), parallelism=1)
    run.await_end()
    (name,) = run.summary()["queries"]
    found = [tuple(row.values()) for row in run.arrow(name).to_pylist()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
