"""Joins of three and four streams by different keys, as DuckDB answers them; also in parts, early and late."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps

SECOND = 1_000_000
WINDOW = "[RANGE '10 seconds']"
STREAMS = ("a", "b", "c", "d")

# FROM, WHERE and the select list: a chain, a star, a chain named out of order, a ring, a common key with one of two.
QUERIES = {
    "chain": ("a b c", "a.k = b.k AND b.j = c.j", "a.g AS g, count(*) AS n, sum(c.x) AS s, min(b.x) AS m"),
    "four": (
        "a b c d",
        "a.k = b.k AND b.j = c.j AND c.g = d.g",
        "d.g AS g, count(*) AS n, sum(a.x) AS s, max(d.x) AS m",
    ),
    "star": (
        "b a c",
        "b.k = a.k AND b.j = c.j AND b.x < c.x",
        "b.g AS g, count(*) AS n, sum(a.x + c.x) AS s, max(b.x) AS m",
    ),
    "apart": ("a c b", "c.j = b.j AND b.k = a.k", "c.g AS g, count(DISTINCT a.k) AS n, sum(b.x) AS s, max(a.x) AS m"),
    "ring": ("a b c", "a.k = b.k AND b.j = c.j AND c.g = a.g", "a.g AS g, count(*) AS n, sum(b.x) AS s, max(c.x) AS m"),
    "more": ("a b c", "a.k = b.k AND b.k = c.k AND a.j = c.j", "b.g AS g, count(*) AS n, sum(c.x) AS s, max(a.x) AS m"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four streams of 20 seconds, with NULLs and keys of unlike types."""
    folder, rng, rows = tmp_path_factory.mktemp("linked"), np.random.default_rng(8), 400
    for number, name in enumerate(STREAMS):
        times = np.sort(rng.integers(0, 20 * SECOND, rows))
        nulls = rng.random((2, rows)) < 0.05
        table = {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array(rng.integers(0, 150, rows), pa.int32() if number % 2 else pa.int64(), mask=nulls[0]),
            "j": pa.array([f"j{value}" for value in rng.integers(0, 120, rows)], mask=nulls[1]),
            "g": pa.array(rng.integers(0, 5 if name in "ab" else 60, rows)),
            "x": pa.array(rng.integers(-50, 50, rows)),
        }
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
    return folder


def expected(place: Path, query: str) -> Counter[tuple[Any, ...]]:
    named, where, shown = QUERIES[query]
    sources = ", ".join(f"(SELECT *, epoch_us(ts) // {10 * SECOND} AS w FROM '{place}/{one}.parquet') {one}"
                        for one in named.split())  # fmt: skip
    first, *others = named.split()
    together = " AND ".join(f"{one}.w = {first}.w" for one in others)
    text = f"SELECT {first}.w * 10, {shown} FROM {sources} WHERE {together} AND {where} GROUP BY ALL"
    return Counter(tuple(map(int, row)) for row in duckdb.sql(text).fetchall())


@pytest.mark.parametrize(("joins", "memory"), [("early", 100_000_000), ("late", 100_000_000), ("early", 20_000)])
def test_joins_by_different_keys(joins: str, memory: int, place: Path, tmp_path: Path) -> None:
    text = "".join(f"CREATE STREAM {one} FROM 'parquet:{place}/{one}.parquet' WATERMARK ts DELAY '1 second';"
                   for one in STREAMS)  # fmt: skip
    for name, (named, where, shown) in QUERIES.items():
        sources = ", ".join(f"{one} {WINDOW}" for one in named.split())
        text += f"CREATE QUERY {name} AS SELECT {shown} FROM {sources} WHERE {where} GROUP BY {shown.split()[0]};"
    run = ps.App(master="process").sql(text).start(
        str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), joins=joins, task_memory=memory, batch_rows=300
    )  # fmt: skip
    run.await_end()
    for name in QUERIES:
        rows = run.arrow(name).to_pylist()
        found = Counter((int(r["window_start"].timestamp()), r["g"], r["n"], r["s"], r["m"]) for r in rows)
        assert found == expected(place, name), name
        assert found
        windows = run.window_account(name)
        sides = run.summary()["queries"][name]["accounting"].values()
        assert sum(window["exact"] for window in windows) == sum(side["exact"] for side in sides)
