"""Trees of tables where a task has to begin anew in the middle, or has nothing to do: same results as the oracle.

Sums that outgrow a word, values that outgrow their field, first NULLs, dictionaries that are full, tables without room,
streams without tuples, queries that no tuple passes, late tuples for some queries only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from in_process import Engine
from measured import Fixed, resolved
from measured import settings as usual

from penstock.sharing.plan import unshared_plans
from penstock.testing.apps.generators import Settings
from penstock.testing.asserts import assert_same_account, assert_same_rows
from penstock.testing.oracle.expected import expect
from support.plans import random_plans

ROWS = 6_000
SCHEMA = "(ts TIMESTAMP, a INT, b BIGINT, s STRING, src INET, x DOUBLE, v BIGINT, w BIGINT)"
QUERIES = {
    "pairs": "SELECT a, s, count(*) AS n, sum(v) AS t, min(s) AS low FROM e [RANGE '2 seconds'] GROUP BY a, s",
    "hosts": "SELECT src, sum(v) AS t, avg(v) AS mean, max(src) AS high FROM e [RANGE '2 seconds'] GROUP BY src",
    "nets": "SELECT src/16 AS net, a, sum(x) AS t, stddev_samp(v) AS d FROM e [RANGE '3 seconds' SLIDE '2 seconds'] "
    "GROUP BY src/16, a",
    "means": "SELECT a, avg(w) AS mean FROM e [RANGE '4 seconds'] GROUP BY a",
    "finer": "SELECT a, b, avg(w) AS mean FROM e [RANGE '2 seconds'] GROUP BY a, b",
    "some": "SELECT b, count(v) AS n, max(s) AS high FROM e [RANGE '1 second'] WHERE v > 0 GROUP BY b",
    "none": "SELECT a, b, count(*) AS n FROM e [RANGE '2 seconds'] WHERE a = 1000000 GROUP BY a, b",
    "sofar": "SELECT a, sum(v) AS t FROM e [WINDOW UNTIL NOW] GROUP BY a EVERY 2 SECONDS",
    "counted": "SELECT s, sum(v) AS t FROM e [ROWS 1000 SLIDE 300] GROUP BY s",
    "again": "SELECT max(t) AS most, count(*) AS n FROM pairs [RANGE '4 seconds']",
}
Columns = dict[str, Any]


def stream(rows: int = ROWS) -> Columns:
    dice = np.random.default_rng(rows)
    hosts = [None, *(f"10.{i % 3}.0.{i}" for i in range(9)), *(f"2001:db8:{i % 2:x}::{i:x}" for i in range(5))]
    return {
        "ts": np.arange(rows) * 2_000,
        "a": dice.integers(0, 9, rows).tolist(),
        "b": dice.integers(0, 40, rows).tolist(),
        "s": [f"name {n}" for n in dice.integers(0, 30, rows)],
        "src": [hosts[n] for n in dice.integers(0, len(hosts), rows)],
        "x": dice.normal(0, 1e6, rows).tolist(),
        "v": dice.integers(-100, 100, rows).tolist(),
        "w": dice.integers(0, 100, rows).tolist(),
    }


def wide(columns: Columns) -> None:
    """Sums that take two words, from the middle on."""
    columns["v"] = [v * (1 << 50) if i > ROWS // 2 else v for i, v in enumerate(columns["v"])]
    columns["w"] = [(1 << 62) + w if i > ROWS // 4 else w for i, w in enumerate(columns["w"])]


def outgrown(columns: Columns) -> None:
    """Values far beyond those before them, then NULLs."""
    for name in ("a", "b"):
        columns[name] = [n * 7919 - 5 if i > ROWS // 3 else n for i, n in enumerate(columns[name])]
        columns[name] = [None if i > ROWS // 2 and not i % 7 else n for i, n in enumerate(columns[name])]
    columns["v"] = [None if i > ROWS // 2 and not i % 5 else v for i, v in enumerate(columns["v"])]


def many_strings(columns: Columns) -> None:
    """Dictionaries that fill up again and again."""
    columns["s"] = [f"{i % 1777} {'long' * 20}" for i in range(ROWS)]
    columns["src"] = [f"2001:db8::{i % 999:x}" if i % 2 else f"10.0.{i % 5}.{i % 99}" for i in range(ROWS)]


def late(columns: Columns) -> None:
    """Tuples that are late for short windows, and not for long ones."""
    dice = np.random.default_rng(1)
    columns["ts"] = columns["ts"] - np.where(dice.random(ROWS) < 0.2, dice.integers(0, 3_000_000, ROWS), 0)


def timeless(columns: Columns) -> None:
    columns["ts"] = [None if not i % 3 else int(t) for i, t in enumerate(columns["ts"])]


SMALL = replace(usual(2_000, 2), task_memory=60_000, chunk_rows=500, table_rows=4)
CASES: dict[str, tuple[Callable[[Columns], None], Settings]] = {
    "wide": (wide, usual(4_000, 1)),
    "wide in small chunks": (wide, replace(usual(4_000, 1), chunk_rows=300)),
    "outgrown": (outgrown, replace(usual(4_000, 1), chunk_rows=300)),
    "strings": (many_strings, SMALL),
    "late": (late, replace(usual(500, 2), chunk_rows=200)),
    "timeless": (timeless, SMALL),
}


def run(columns: Columns, settings: Settings, folder: Path, seed: int, patch: pytest.MonkeyPatch) -> Engine:
    folder.mkdir()
    types = {"a": pa.int32(), "b": pa.int64(), "s": pa.string(), "src": pa.string(), "x": pa.float64()}
    types |= {"v": pa.int64(), "w": pa.int64()}
    table = pa.table(
        {"ts": pa.array(columns["ts"], pa.timestamp("us"))}
        | {name: pa.array(columns[name], kind) for name, kind in types.items()}
    )
    pq.write_table(table, folder / "in.parquet")
    text = [f"CREATE STREAM e {SCHEMA} FROM 'parquet:{folder}/in.parquet' WATERMARK ts DELAY '100 milliseconds';"]
    text += [f"CREATE QUERY {name} AS {select};" for name, select in QUERIES.items()]
    app, sources = resolved("\n".join(text))
    plans = random_plans(unshared_plans(app), random.Random(seed))
    engine = Engine(folder / "run", app, sources, settings, Fixed(plans))
    engine.finish()
    story = f"seed {seed}: {plans['e'].tables}"
    summary = engine.summary()
    expected = expect(app, table, [batch["rows"] for batch in summary["batches"]])
    for name, rows in expected.rows.items():
        found = engine.rows(name)
        assert_same_rows(rows.slice(0, 0) if found is None else found, rows, f"{story}\nquery {name}")
        assert_same_account(summary["queries"][name]["accounting"], expected.accounts[name], f"{story}\nquery {name}")
    return engine


@pytest.mark.parametrize("name", list(CASES))
def test_beginning_anew_loses_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, settings = CASES[name]
    columns = stream()
    change(columns)
    for seed in range(3):
        run(columns, settings, tmp_path / str(seed), seed, monkeypatch)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_streams_of_almost_nothing(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        run(stream(rows), SMALL, tmp_path / str(seed), seed, monkeypatch)
