"""EXISTS, NOT EXISTS, IN and NOT IN: small enough to count by hand, and large enough to be cut into parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.runtime.merge.join import items

SECOND = 1_000_000
Rows = list[tuple[int, int | None, int]]

OUTER: Rows = [(1, 1, 10), (2, 2, 20), (3, None, 30), (11, 1, 40), (12, 3, 50), (21, 5, 60)]
INNER: Rows = [(1, 1, 5), (2, 1, 15), (13, 3, 45), (14, None, 1), (15, 9, 9)]
WINDOW = "[RANGE '10 seconds']"

# The values of x that stay, by the start of their window; of a window that gives nothing there is no row.
ASKED: dict[str, tuple[str, dict[int, list[int]]]] = {
    "there": (f"EXISTS (SELECT 1 FROM b B {WINDOW} WHERE B.k = A.k)", {0: [10], 10: [50]}),
    "missing": (f"NOT EXISTS (SELECT * FROM b B {WINDOW} WHERE B.k = A.k)", {0: [20, 30], 10: [40], 20: [60]}),
    "greater": (f"EXISTS (SELECT x FROM b B {WINDOW} WHERE B.k = A.k AND B.x > A.x)", {0: [10]}),
    "no_greater": (
        f"NOT EXISTS (SELECT 1 FROM b B {WINDOW} WHERE B.k = A.k AND B.x > A.x)",
        {0: [20, 30], 10: [40, 50], 20: [60]},
    ),
    "within": (f"A.k IN (SELECT k FROM b {WINDOW})", {0: [10], 10: [50]}),
    # A NULL of A never passes where b holds something; a NULL of b lets nothing pass; without b all pass.
    "not_in": (f"A.k NOT IN (SELECT k FROM b {WINDOW})", {0: [20], 20: [60]}),
    "not_in_some": (f"NOT (A.k IN (SELECT k FROM b {WINDOW} WHERE k > 3))", {0: [10, 20, 30], 10: [40, 50], 20: [60]}),
    "not_in_alike": (f"A.k NOT IN (SELECT k FROM b B {WINDOW} WHERE B.x = A.x - 5)", {0: [20, 30], 10: [40], 20: [60]}),
    "twice": (
        f"""EXISTS (SELECT 1 FROM b B {WINDOW} WHERE B.k = A.k) AND A.x > 5
            AND NOT EXISTS (SELECT 1 FROM b C {WINDOW} WHERE C.k = A.k AND C.x > 20)""",
        {0: [10]},
    ),
    "anything": (f"EXISTS (SELECT 1 FROM b B {WINDOW} WHERE B.x > 20)", {10: [40, 50]}),
    "when": (
        f"NOT EXISTS (SELECT 1 FROM b B {WINDOW} WHERE A.x < 45 AND B.k = A.k)",
        {0: [20, 30], 10: [40, 50], 20: [60]},
    ),
    "so_far": ("NOT EXISTS (SELECT 1 FROM b B [WINDOW UNTIL NOW] WHERE B.k = A.k)", {0: [20, 30], 20: [60]}),
    "listed": ("A.k IN (SELECT k FROM t)", {0: [10], 10: [40], 20: [60]}),
    "not_listed": ("A.k NOT IN (SELECT k FROM t)", {0: [20], 10: [50]}),
    "no_row": ("NOT EXISTS (SELECT 1 FROM t WHERE t.k = A.k)", {0: [20, 30], 10: [50]}),
    "no_row_when": ("NOT EXISTS (SELECT 1 FROM t WHERE t.k = A.k AND A.x > 20)", {0: [10, 20, 30], 10: [50]}),
    "not_in_nulls": ("A.k NOT IN (SELECT k FROM nulls)", {}),
    "results": (f"A.k IN (SELECT k FROM often {WINDOW})", {10: [40]}),
}


def write(path: Path, rows: Rows) -> None:
    seconds, keys, values = zip(*rows, strict=True)
    times = pa.array([second * SECOND for second in seconds], pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"ts": times, "k": pa.array(keys, pa.int64()), "x": pa.array(values, pa.int64())}), path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All of them in one app."""
    place = tmp_path_factory.mktemp("asked")
    write(place / "a.parquet", OUTER)
    write(place / "b.parquet", INNER)
    (place / "t.csv").write_text("k\n1\n5\n")
    (place / "nulls.csv").write_text("k,y\n7,1\n,2\n")
    asked = "".join(
        f"CREATE QUERY {name} AS SELECT A.x AS x, count(*) AS n FROM a A {WINDOW} WHERE {where} GROUP BY A.x;\n"
        for name, (where, _) in ASKED.items()
    )
    text = f"""
        CREATE STREAM a FROM 'parquet:{place}/a.parquet' WATERMARK ts DELAY '0 seconds';
        CREATE STREAM b FROM 'parquet:{place}/b.parquet' WATERMARK ts DELAY '0 seconds';
        CREATE TABLE t (k BIGINT) FROM 'csv:{place}/t.csv';
        CREATE TABLE nulls (k BIGINT, y BIGINT) FROM 'csv:{place}/nulls.csv';
        CREATE QUERY often AS SELECT k, count(*) AS n FROM b {WINDOW} GROUP BY k HAVING count(*) > 1;
        CREATE QUERY counted AS SELECT count(*) AS n, sum(A.x) AS total FROM a A {WINDOW}
          WHERE EXISTS (SELECT 1 FROM b B {WINDOW} WHERE B.k = A.k AND B.x > 100);
        CREATE QUERY both AS SELECT A.x AS ax, C.x AS cx FROM a A {WINDOW}, a C {WINDOW}
          WHERE A.k = C.k AND NOT EXISTS (SELECT 1 FROM b B {WINDOW} WHERE B.k = A.k AND B.x + C.x > 20);
        {asked}"""
    made = ps.App(master="process").sql(text).start(
        str(place / "checkpoint"), output=str(place / "out"), parallelism=1, batch_rows=4
    )  # fmt: skip
    made.await_end()
    return made


def found(run: Any, name: str) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row in run.arrow(name).to_pylist():
        assert row["n"] == 1  # a record is never there twice, however many the subquery has
        rows.setdefault(int(row["window_start"].timestamp()), []).append(row["x"])
    return {start: sorted(values) for start, values in sorted(rows.items())}


@pytest.mark.parametrize("name", ASKED)
def test_records_that_a_subquery_leaves(run: Any, name: str) -> None:
    assert found(run, name) == ASKED[name][1]


def test_a_window_exists_where_from_holds_something(run: Any) -> None:
    """Also where the subquery's stream holds nothing, or leaves nothing."""
    rows = sorted((row["window_start"].timestamp(), row["n"], row["total"]) for row in run.arrow("counted").to_pylist())
    assert rows == [(0, 0, None), (10, 0, None), (20, 0, None)]


def test_subqueries_of_several_streams(run: Any) -> None:
    rows = sorted((row["ax"], row["cx"]) for row in run.arrow("both").to_pylist())
    assert rows == [(20, 20), (40, 40), (60, 60)]  # of 10 and 50 there is a greater sum


def test_accounts_of_what_is_asked(run: Any) -> None:
    """A NULL filters, unless NOT EXISTS keeps it; what a table filters is filtered."""
    told = {name: run.summary()["queries"][name]["accounting"] for name in ASKED}
    counted = {
        name: {side: (entry["exact"], entry["filtered"]) for side, entry in told[name].items()}
        for name in ("there", "missing", "within", "not_in", "when")
    }
    assert counted == {
        "there": {"A": (5, 1), "B": (4, 1)},
        "missing": {"A": (6, 0), "B": (4, 1)},
        "within": {"A": (5, 1), "b": (4, 1)},
        "not_in": {"A": (6, 0), "b": (5, 0)},
        "when": {"A": (6, 0), "B": (4, 1)},
    }
    assert (told["listed"]["exact"], told["listed"]["filtered"]) == (3, 3)
    assert run.window_account("missing")[0]["exact"] == 3 + 2


@pytest.mark.parametrize("joins", ["early", "late"])
def test_large_instants_are_cut_into_parts(tmp_path: Path, joins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the key of the first subquery, while the other is there whole in every part; by rows where NOT IN asks."""
    monkeypatch.setattr(items, "ALONE", 100)
    monkeypatch.setattr(items, "LEAST_ROWS", 100)
    rng = np.random.default_rng(17)
    rows = 6_000
    data = {
        name: {"ts": np.sort(rng.integers(0, 20 * SECOND, rows)), "k": rng.integers(0, 2_000, rows),
               "j": rng.integers(0, 900, rows)}
        for name in ("a", "b", "c")
    }  # fmt: skip
    for name, columns in data.items():
        times = pa.array(columns["ts"], pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({**columns, "ts": times}), tmp_path / f"{name}.parquet")
    text = "".join(f"CREATE STREAM {name} FROM 'parquet:{tmp_path}/{name}.parquet';" for name in data)
    text += f"""CREATE QUERY q AS SELECT A.j % 10 AS g, count(*) AS n, sum(A.k) AS total FROM a A {WINDOW}
        WHERE EXISTS (SELECT 1 FROM b B {WINDOW} WHERE B.k = A.k)
          AND NOT EXISTS (SELECT 1 FROM c C {WINDOW} WHERE C.j = A.j AND C.k > A.k) GROUP BY A.j % 10;
        CREATE QUERY pairs AS SELECT A.j % 10 AS g, count(DISTINCT A.j % 10) AS one, count(*) AS n
          FROM a A {WINDOW}, b B {WINDOW} WHERE A.k = B.k GROUP BY A.j % 10;
        CREATE QUERY others AS SELECT count(*) AS n FROM a A {WINDOW} WHERE A.k NOT IN (SELECT k FROM b {WINDOW});"""
    run = ps.App(master="process").sql(text).start(
        str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), task_memory=40_000, joins=joins, plan="none",
        parallelism=4,
    )  # fmt: skip
    run.await_end()
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    others, pairs = [], {}
    for window in (0, 1):
        a, b, c = ({k: v[d["ts"] // (10 * SECOND) == window] for k, v in d.items()} for d in data.values())
        greatest = np.full(900, -1)
        np.maximum.at(greatest, c["j"], c["k"])
        stays = np.isin(a["k"], b["k"]) & (greatest[a["j"]] <= a["k"])
        others.append(int((~np.isin(a["k"], b["k"])).sum()))
        often = np.bincount(b["k"], minlength=2_000)[a["k"]]
        for group in range(10):
            pairs[window * 10, group] = 1, int(often[a["j"] % 10 == group].sum())
            mine = stays & (a["j"] % 10 == group)
            if mine.any():
                expected[window * 10, group] = int(mine.sum()), int(a["k"][mine].sum())
    rows_found = run.arrow("q").to_pylist()
    assert {(int(r["window_start"].timestamp()), r["g"]): (r["n"], r["total"]) for r in rows_found} == expected
    rows_found = run.arrow("pairs").to_pylist()  # whose groups and details are alike
    assert {(int(r["window_start"].timestamp()), r["g"]): (r["one"], r["n"]) for r in rows_found} == pairs
    assert [row["n"] for row in sorted(run.arrow("others").to_pylist(), key=lambda row: row["window_start"])] == others
    assert [window["exact"] for window in run.window_account("others")] == [
        sum(int((data[name]["ts"] // (10 * SECOND) == window).sum()) for name in "ab") for window in (0, 1)
    ]
