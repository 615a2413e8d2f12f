"""Random one-off queries on files, with and without a window, row for row as DuckDB orders them.

Every failure names its seed: `case(seed)` brings the query back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.app.answers import Answered, Place, answered
from penstock.app.api import App
from penstock.sinks.json import write_json
from support.amounts import quick_and

START = 1_767_225_600_000_000  # 2026-01-01, in microseconds
STEP = 7_000_000
KEYS = ("host", "port", "flag", "size % 3", "upper(host)")
AGGREGATES = (
    "count(*)", "count(size)", "sum(size)", "min(size)", "max(x)", "avg(size)", "min(host)", "max(ts)",
    "count(*) FILTER (WHERE size > 40)", "sum(size) / count(*)",
)  # fmt: skip
WHERES = ("size > 50", "host IS NOT NULL", "host LIKE 'a%'", "port IN (1, 2)", "size > 10000", "x < 0.5 OR flag")


def records(dice: random.Random, rows: int) -> pa.Table:
    def some(values: list[Any]) -> list[Any]:
        return [None if dice.random() < 0.1 else dice.choice(values) for _ in range(rows)]

    return pa.table({
        "ts": pa.array([START + dice.randrange(60_000_000) for _ in range(rows)], pa.timestamp("us")),
        "host": pa.array(some(["a", "ab", "b", "", "Zürich"]), pa.string()),
        "port": pa.array(some([1, 2, 3]), pa.int32()),
        "flag": pa.array(some([True, False]), pa.bool_()),
        "size": pa.array(some(list(range(100))), pa.int64()),
        "x": pa.array(some([0.0, -1.5, 0.25, float("inf")]), pa.float64()),
    })  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A query in both dialects; DuckDB's has the window among its keys."""

    ours: str
    theirs: str
    windowed: bool


def case(seed: int, path: Path) -> Case:
    dice = random.Random(seed)
    windowed, keys = dice.random() < 0.5, dice.sample(KEYS, dice.choice([0, 0, 1, 2]))
    made = dice.sample(AGGREGATES, dice.randint(1, 3))
    named = [f"{key} AS k{n}" for n, key in enumerate(keys)] + [f"{one} AS a{n}" for n, one in enumerate(made)]
    where = f" WHERE {dice.choice(WHERES)}" if dice.random() < 0.4 else ""
    having = " HAVING count(*) > 2" if keys and dice.random() < 0.3 else ""
    ordered = dice.random() < 0.6
    direction = dice.choice(["", " DESC"])
    limit = f" LIMIT {dice.choice([0, 1, 3])}" if dice.random() < 0.3 else ""
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    window = " [RANGE '7 seconds']" if windowed else ""
    ours = f"SELECT {', '.join(named)} FROM '{path}'{window}{where}{group}{having}"
    ours += f" ORDER BY a0{direction}" if ordered else ""
    ties = [f"k{n} ASC NULLS FIRST" for n in range(len(keys))]
    order = [f"a0{direction} NULLS {'LAST' if direction else 'FIRST'}"] if ordered else []
    start = f"epoch_us(ts) // {STEP} * {STEP}"
    outer = f"SELECT {', '.join(named)}" + (f", {start} AS w" if windowed else "")
    grouped = [*keys, *([start] if windowed else [])]
    theirs = f"{outer} FROM '{path}'{where}" + (f" GROUP BY {', '.join(grouped)}" if grouped else "") + having
    per_window = "PARTITION BY w " if windowed else ""
    ranked = ", ".join([*order, *ties]) or "1"
    theirs = f"SELECT *, row_number() OVER ({per_window}ORDER BY {ranked}) AS place FROM ({theirs})"
    theirs = f"SELECT * FROM ({theirs})" + (f" WHERE place <= {limit.split()[1]}" if limit else "")
    theirs += f" ORDER BY {'w, ' if windowed else ''}place"
    return Case(ours + limit, theirs, windowed)


def answer(text: str, place: Place) -> Answered:
    def watch(app: App, checkpoint: str, settings: dict[str, Any]) -> dict[str, Any]:
        run = app.start(checkpoint, **settings)
        run.await_end()
        return run.summary()

    return answered(App().selects(text), place, watch)


def check(one: Case, table: pa.Table, seed: int) -> None:
    rows = duckdb.sql(one.theirs).fetchall()
    columns = len(table.column_names) - (2 if one.windowed else 0)
    expected = [tuple(_plain(value) for value in row[:columns]) for row in rows]
    found = [tuple(_plain(value) for value in row.values())[:columns] for row in table.to_pylist()]
    assert found == expected, f"seed {seed}: {one.ours}"
    if one.windowed:
        starts = [int(value.timestamp() * 1_000_000) for value in table.column("window_start").to_pylist()]
        assert starts == [row[columns] for row in rows], f"seed {seed}: {one.ours}"


def _plain(value: Any) -> Any:
    if hasattr(value, "timestamp"):
        return value.replace(tzinfo=None)
    return round(float(value), 9) if isinstance(value, float) else value


@pytest.mark.parametrize("first", quick_and([1, 31], range(1_000, 1_600, 30)))
def test_queries_on_files_are_answered_as_by_duckdb(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 30):
        path = tmp_path / f"{seed}.parquet"
        dice = random.Random(seed)
        pq.write_table(records(dice, dice.choice([0, 1, 20, 400])), path, row_group_size=50)
        one = case(seed, path)
        found = answer(one.ours, Place("process", 1, dice.choice(["none", "auto"])))
        check(one, found.tables["query"], seed)
        account = found.summary["accounting"]
        assert account["input"] == sum(count for part, count in account.items() if part != "input"), seed


@pytest.mark.parametrize("parallelism", [2, 3])
def test_workers_and_several_queries_at_once(parallelism: int, tmp_path: Path) -> None:
    path = tmp_path / "all.parquet"
    pq.write_table(records(random.Random(5), 3_000), path, row_group_size=200)
    cases = [case(seed, path) for seed in range(40, 60)]
    found = answer(";\n".join(one.ours for one in cases), Place("process", parallelism))
    for number, one in enumerate(cases, 1):
        check(one, found.tables[f"query{number}"], 39 + number)


def test_several_files_and_formats_give_the_same(tmp_path: Path) -> None:
    table = records(random.Random(9), 300)
    for number in range(3):
        part = table.slice(100 * number, 100)
        pq.write_table(part, tmp_path / f"{number}.parquet")
        with open(tmp_path / f"{number}.jsonl", "wb") as file:
            write_json(part, file)
    text = "SELECT port, count(*) AS n, sum(size) AS s FROM '{}' GROUP BY port ORDER BY n DESC"
    parquet = answer(text.format(tmp_path / "*.parquet"), Place("process", 1, "none")).tables["query"]
    lines = answer(text.format(tmp_path / "*.jsonl"), Place("process", 1, "none")).tables["query"]
    assert sum(parquet.column("n").to_pylist()) == 300
    assert parquet.to_pylist() == lines.to_pylist()


def test_a_query_on_windows_needs_none(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(records(random.Random(3), 500), path)
    text = f"SELECT max(n) AS peak, count(*) AS windows FROM (SELECT count(*) AS n FROM '{path}' [RANGE '7 seconds'])"
    found = answer(text, Place("process", 1, "none")).tables["query"]
    per_window = f"SELECT count(*) AS n FROM '{path}' GROUP BY epoch_us(ts) // {STEP}"
    expected = duckdb.sql(f"SELECT max(n), count(*) FROM ({per_window})").fetchall()
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


def test_without_a_window_a_record_needs_no_time_but_must_be_readable(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("ts,a\n2026-01-01 00:00:01,1\nno time,2\n,3\n2026-01-01 00:00:02,4,5,6\n")
    stream = f"CREATE STREAM x (ts TIMESTAMP, a INT) FROM 'csv:{tmp_path / 'x.csv'}'"
    found = answer(f"{stream}; SELECT count(*) AS n FROM x; SELECT sum(a) AS s FROM x", Place("process", 1, "none"))
    assert found.tables["query1"].to_pylist() == [{"n": 3}]
    assert found.tables["query2"].to_pylist() == [{"s": 6}]
    account = found.summary["queries"]["query1"]["accounting"]
    assert (account["input"], account["exact"], account["malformed"]) == (4, 3, 1)
