"""Plans of joins that change by themselves while an app runs: answers are those of DuckDB over all records.

A stream has few groups at first, then as many as records, then few again; the other one stays as it is. Costs are those
of a slow machine, whatever the one that tests run on: plans change although there is little data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.runtime.batch.report import BatchReport
from penstock.runtime.planning import join_costs
from penstock.runtime.profile import calibrate
from penstock.sharing.joins.cost import JoinCosts
from penstock.sharing.joins.plans import plan_name
from penstock.sharing.model.unit_costs import USUAL as UNITS
from penstock.sharing.model.unit_costs import Costs
from penstock.sharing.plan import joins_in
from penstock.state import versions
from penstock.state.manifest import Manifest
from penstock.testing.asserts import assert_same_rows

TURN, TURNS, SECONDS = 40_000, 3, 20  # records and seconds of a turn
BATCH = 10_000
KEYS = 20_000
START = 1_767_225_600 * 1_000_000
JOIN = """SELECT A.g AS g, B.h AS h, count(*) AS n, sum(A.x) AS t FROM a A {window} JOIN b B {window} ON A.k = B.k
GROUP BY A.g, B.h"""


SLOW = replace(UNITS, insert=((16_384.0, 100.0), (67_108_864.0, 200.0)))


@contextmanager
def slow_costs(cache: Path, units: Costs = SLOW) -> Iterator[None]:
    """Costs ten times the usual ones, in this process; others find them in the same folder."""
    before, os.environ["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"], str(cache)
    joins = JoinCosts(
        append=10, write=50, row=200, pair=20, fold=20, cell=5, cell_pair=5, merge=500, combined=200, folded=50
    )
    for module, costs in ((calibrate, units), (join_costs, joins)):
        path = module.kept_at()
        assert path is not None
        calibrate.store(path, asdict(costs))
    _forget()
    try:
        yield
    finally:
        os.environ["XDG_CACHE_HOME"] = before
        _forget()


def _forget() -> None:
    calibrate.calibrated.cache_clear()
    join_costs.calibrated_joins.cache_clear()


def write_drifting(folder: Path, seed: int = 1) -> None:
    """Keys of few groups, then each its own, in turns."""
    rng = np.random.default_rng(seed)
    rows = TURN * TURNS
    times = START + np.arange(rows) * (SECONDS * 1_000_000 // TURN)
    turns = np.arange(rows) // TURN
    few = turns % 2 == 0
    keys = np.where(few, rng.integers(0, 40, rows), rng.integers(0, KEYS, rows))
    groups = np.where(few, rng.integers(0, 2, rows), rng.integers(0, 50, rows))
    table = {"k": keys, "g": groups, "x": rng.integers(0, 100, rows)}
    _store(folder / "a.parquet", times, table)
    other = TURNS * 3_000
    table = {"k": rng.integers(0, 60, other), "h": rng.integers(0, 3, other)}
    _store(folder / "b.parquet", START + np.arange(other) * (SECONDS * 1_000_000 // 3_000), table)


def _store(path: Path, times: np.ndarray, columns: dict[str, np.ndarray]) -> None:
    table = pa.table({"ts": pa.array(times, pa.timestamp("us")), **columns})
    pq.write_table(table, path, row_group_size=max(100, len(times) // 60))


def app_text(folder: Path, length: int, slide: int) -> str:
    window = f"[RANGE '{length} seconds' SLIDE '{slide} seconds']"
    streams = (f"CREATE STREAM {n} FROM 'parquet:{folder / n}.parquet' WATERMARK ts DELAY '0 s';" for n in "ab")
    return "\n".join([*streams, f"CREATE QUERY j AS {JOIN.format(window=window)};"])


def answers(folder: Path, length: int, slide: int) -> pa.Table:
    """The same join by DuckDB, at every instant at which both streams hold a record."""
    database = duckdb.connect()
    for name in "ab":
        database.execute(f"CREATE VIEW {name} AS SELECT *, epoch_us(ts) AS u FROM '{folder / name}.parquet'")
    last = START + TURNS * SECONDS * 1_000_000
    ends = range(START + slide * 1_000_000, last + length * 1_000_000, slide * 1_000_000)
    parts = []
    for end in ends:
        held = f"u >= {end - length * 1_000_000} AND u < {end}"
        parts.append(
            f"SELECT A.g AS g, B.h AS h, count(*) AS n, sum(A.x)::BIGINT AS t, "
            f"make_timestamp({end - length * 1_000_000}) AS window_start, make_timestamp({end}) AS window_end "
            f"FROM (SELECT * FROM a WHERE {held}) A JOIN (SELECT * FROM b WHERE {held}) B ON A.k = B.k "
            "GROUP BY A.g, B.h"
        )
    found = pa.concat_tables([database.sql(part).to_arrow_table() for part in parts])
    times = [pa.field(name, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end")]
    return found.cast(pa.schema([*found.schema][:-2] + times))


def plans_of(checkpoint: Path, seen: dict[int, str]) -> None:
    """The plan of the join in every version that there is."""
    for path in (checkpoint / versions.FOLDER).glob("[0-9]*.json"):
        version = versions.load(checkpoint, int(path.stem))
        seen[version.number] = plan_name(joins_in(version.plans)["j"].early)


@pytest.mark.parametrize(
    ("plan", "length", "slide"), [("auto", 4, 1), pytest.param("none", 2, 2, marks=pytest.mark.slow)]
)
def test_a_drifting_stream_changes_the_plan_of_its_join(plan: str, length: int, slide: int, tmp_path: Path) -> None:
    write_drifting(tmp_path)
    with slow_costs(tmp_path / "cache"):
        told = plans_while_running(plan, length, slide, tmp_path)
    changes = [one != other for one, other in pairwise(told)]
    assert sum(changes) >= 2, told
    found = pa.concat_tables(pq.read_table(path) for path in (tmp_path / "out" / "j").glob("*.parquet"))
    assert_same_rows(found, answers(tmp_path, length, slide), f"plans {told}")


def plans_while_running(plan: str, length: int, slide: int, tmp_path: Path) -> list[str]:
    seen: dict[int, str] = {}

    def listen(report: BatchReport, manifest: Manifest) -> None:
        plans_of(tmp_path / "checkpoint", seen)

    settings: dict[str, Any] = {"batch_rows": BATCH, "parallelism": 2, "plan": plan, "listener": listen}
    run = (
        ps.App(master="process")
        .sql(app_text(tmp_path, length, slide))
        .start(str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), **settings)
    )
    run.await_end()
    return [seen[number] for number in sorted(seen)]
