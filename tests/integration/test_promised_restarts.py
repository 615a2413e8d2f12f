"""Queries added and dropped between runs on a live stream that others promise a delay of: kinds stay, queries may go.

All records are read, however late (`overload="queue"`), so results are exact on any machine.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.errors import StateError
from penstock.runtime.run.run import Run

START, SECONDS, ROWS = 1_700_000_000, 12, 6_000
SELECT = "SELECT count(*) AS n FROM s [RANGE '1 second']"
PROMISE = " LIMIT DELAY TO '5 seconds'"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    times = np.sort(np.random.default_rng(1).uniform(0, SECONDS, ROWS))
    table = pa.table({"ts": pa.array(START * 10**6 + (times * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))})
    path = tmp_path_factory.mktemp("data") / "s.parquet"
    pq.write_table(table, path)
    return path


def start(data: Path, folder: Path, *queries: str) -> Run:
    """Queries whose name begins with p promise a delay."""
    app = ps.App(master="process").stream(
        "s", f"replay:parquet:{data}", time="ts", delay="0 seconds", options={"speed": "4"}
    )
    for name in queries:
        app.query(name, SELECT + PROMISE * name.startswith("p"))
    places = {"checkpoint": str(folder / "ck"), "output": str(folder / "out")}
    return app.start(**places, overload="queue", parallelism=1)


def some(data: Path, folder: Path, *queries: str) -> None:
    """A run that is stopped after some windows."""
    run = start(data, folder, *queries)
    ends = time.monotonic() + 60
    while not run.window_account(queries[0]):
        assert time.monotonic() < ends
        time.sleep(0.02)
    run.stop()


def counts(run: Run, query: str) -> dict[int, int]:
    """By second; every window is there once."""
    table = run.arrow(query)
    seconds = [int(at.timestamp()) - START for at in table["window_start"].to_pylist()]
    assert set(Counter(seconds).values()) <= {1}
    return dict(zip(seconds, table["n"].to_pylist(), strict=True))


def expected(data: Path) -> dict[int, int]:
    times = pq.read_table(data)["ts"].cast(pa.int64()).to_numpy() // 10**6 - START
    return dict(Counter(times.tolist()))


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (("u",), ("u", "u2")),
        (("p",), ("p", "p2")),
        (("p", "u", "u2"), ("p", "u", "p2")),
    ],
)
def test_queries_of_a_kind_come_and_go(data: Path, tmp_path: Path, first: tuple[str], later: tuple[str]) -> None:
    some(data, tmp_path, *first)
    run = start(data, tmp_path, *later)
    assert run.await_end(60)
    truth = expected(data)
    for name in later:
        found = counts(run, name)
        if name in first:
            assert found == truth
        else:  # its windows begin behind what had been seen
            begun = min(found, default=SECONDS)
            assert begun > 0
            assert found == {second: n for second, n in truth.items() if second >= begun}


def test_kinds_stay(data: Path, tmp_path: Path) -> None:
    for name, first, later, told in (
        ("exact", ("u",), ("u", "p"), "query 'p' promises a delay, and the queries of .* on the live stream 's'"),
        ("promised", ("p",), ("p", "u"), "query 'u' promises no delay, and the queries of .* on the live stream 's'"),
        ("both", ("p", "u"), ("p",), "has a query on the live stream 's' that promises no delay"),
        ("both", ("p", "u"), ("u",), "has a query on the live stream 's' that promises a delay"),
    ):
        folder = tmp_path / name
        if not folder.exists():
            some(data, folder, *first)
        with pytest.raises(StateError, match=told):
            start(data, folder, *later)
    run = start(data, tmp_path / "both", "p", "u")  # what was refused has left no trace
    assert run.await_end(60)
    assert counts(run, "p") == counts(run, "u") == expected(data)
