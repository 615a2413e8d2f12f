"""What is stored as one changes by itself while an app runs, also when it is killed: answers are those of DuckDB.

Records have few groups at first, then each its own, in turns: as groups, and as rows, a union is cheaper. Costs are
those of a slow machine, whatever the one that tests run on: what is stored changes although there is little data.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_drifting_joins import SLOW, slow_costs

import penstock as ps
from penstock.runtime.batch.report import BatchReport
from penstock.sharing.model.unit_costs import PerRow
from penstock.state import versions
from penstock.state.manifest import Manifest
from penstock.testing import faults
from penstock.testing.asserts import assert_same_rows
from penstock.testing.faults import Ended, Fault, Kill, Launch, Lineage, Output, run_campaign

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
KILLS = 25
TURN, TURNS, SECONDS, BATCH = 40_000, 3, 20, 10_000
START = 1_767_225_600 * 1_000_000
WINDOWS = ((2, 2), (10, 10), (4, 2))  # seconds: range and slide
COLUMNS = "abcde"
BUDGET = 0.2  # seconds for planning, which it would not be worth for so few records
COSTS = replace(SLOW, insert=((16_384.0, 400.0), (67_108_864.0, 500.0)), rolled=PerRow(20.0, 12.0))
Ways = tuple[tuple[int, str], ...]


def queries() -> Iterator[tuple[str, str, int, int]]:
    """Name, columns, range and slide; pairs of columns, of all windows."""
    for number, pair in enumerate(combinations(COLUMNS, 2)):
        length, slide = WINDOWS[number % len(WINDOWS)]
        yield f"q_{''.join(pair)}", ", ".join(pair), length, slide


def write_drifting(folder: Path, seed: int = 1) -> None:
    rng, rows = np.random.default_rng(seed), TURN * TURNS
    few = np.arange(rows) // TURN % 2 == 0
    columns = {name: np.where(few, rng.integers(0, 2, rows), rng.integers(0, 3_000, rows)) for name in COLUMNS}
    times = pa.array(START + np.arange(rows) * (SECONDS * 1_000_000 // TURN), pa.timestamp("us"))
    table = pa.table({"ts": times, **columns, "x": rng.integers(0, 100, rows)})
    pq.write_table(table, folder / "in.parquet", row_group_size=5_000)


def app_text(folder: Path) -> str:
    text = [f"CREATE STREAM s FROM 'parquet:{folder / 'in.parquet'}' WATERMARK ts DELAY '0 s';"]
    for name, columns, length, slide in queries():
        window = f"[RANGE '{length} seconds' SLIDE '{slide} seconds']"
        text.append(f"CREATE QUERY {name} AS SELECT {columns}, count(*) AS n, sum(x) AS t FROM s {window} "
                    f"GROUP BY {columns};")  # fmt: skip
    return "\n".join(text)


def answer(folder: Path, columns: str, length: int, slide: int) -> pa.Table:
    """By DuckDB, window by window."""
    database = duckdb.connect()
    database.execute(f"CREATE VIEW s AS SELECT *, epoch_us(ts) AS u FROM '{folder / 'in.parquet'}'")
    end = START + TURNS * SECONDS * 1_000_000
    parts = [
        f"SELECT {columns}, count(*) AS n, sum(x)::BIGINT AS t, make_timestamp({start}) AS window_start, "
        f"make_timestamp({start + length * 1_000_000}) AS window_end FROM s "
        f"WHERE u >= {start} AND u < {start + length * 1_000_000} GROUP BY {columns}"
        for start in range(START - (length - slide) * 1_000_000, end, slide * 1_000_000)
    ]
    found = database.sql(" UNION ALL ".join(parts)).to_arrow_table()
    times = [pa.field(name, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end")]
    return found.cast(pa.schema([*found.schema][:-2] + times))


def ways_of(checkpoint: Path, seen: dict[int, Ways]) -> None:
    """What is stored as one in every version that there is: how many relations, and by which table."""
    for path in (checkpoint / versions.FOLDER).glob("[0-9]*.json"):
        version = versions.load(checkpoint, int(path.stem))
        unions = version.plans["s"].unions
        seen[version.number] = tuple((len(one.relations), one.table) for one in unions)


def test_a_drifting_stream_changes_what_is_stored(tmp_path: Path) -> None:
    write_drifting(tmp_path)
    seen: dict[int, Ways] = {}

    def listen(report: BatchReport, manifest: Manifest) -> None:
        ways_of(tmp_path / "checkpoint", seen)

    with slow_costs(tmp_path / "cache", COSTS):
        settings: dict[str, Any] = {"batch_rows": BATCH, "parallelism": 2, "listener": listen, "plan_budget": BUDGET}
        run = (
            ps.App(master="process")
            .sql(app_text(tmp_path))
            .start(str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), **settings)
        )
        run.await_end()
    told = [seen[number] for number in sorted(seen)]
    assert len(set(told)) >= 2, told
    for name, columns, length, slide in queries():
        found = pa.concat_tables(pq.read_table(path) for path in (tmp_path / "out" / name).glob("*.parquet"))
        assert_same_rows(found, answer(tmp_path, columns, length, slide), f"{name}, {told}")


@dataclass(frozen=True)
class Reference:
    app: Path
    output: Output
    cache: Path


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    """Of a run that stores each relation by itself."""
    place = tmp_path_factory.mktemp("reference")
    write_drifting(place)
    app = place / "app.sql"
    app.write_text(app_text(place))
    with slow_costs(place / "cache", COSTS):
        run = ps.App(master="process").sql(app.read_text()).start(
            str(place / "checkpoint"), output=str(place / "out"), batch_rows=BATCH, parallelism=2, plan="none"
        )  # fmt: skip
        run.await_end()
        yield Reference(app, faults.collect(place / "out"), place / "cache")


def launches(reference: Reference) -> Callable[[Path], Launch]:
    def launch(place: Path) -> Launch:
        options = ("--parallelism", "2", "--plan-budget", str(BUDGET))
        made = Launch(reference.app, place / "checkpoint", place / "out", BATCH, options)
        return made.without_spark().with_environment(XDG_CACHE_HOME=str(reference.cache))

    return launch


def test_kills_around_a_change_of_what_is_stored(reference: Reference, tmp_path: Path) -> None:
    """The driver: before the batch is committed that shows that it should change, and right after; in the middle of
    the next ones."""
    lineage = Lineage(launches(reference)(tmp_path), tmp_path / "logs")
    choose, seen = random.Random(1), dict[int, Ways]()
    try:
        for kill in (
            Kill(Fault("manifest.write", 5)),
            Kill(Fault("manifest.written", 1)),
            Kill(Fault("manifest.written", 2)),
            Kill(Fault("sink.rename", 2)),
        ):
            _, hit = lineage.disturb(kill, choose)
            assert hit, lineage.log
            ways_of(lineage.launch.checkpoint, seen)
        ended, _ = lineage.disturb(Kill(), choose)
        assert ended.code == 0, ended.messages
        ways_of(lineage.launch.checkpoint, seen)
        assert len(set(seen.values())) > 1, seen
        faults.assert_same_output(lineage.launch.output, reference.output, "\n".join(lineage.log))
    finally:
        lineage.clean_up()


@pytest.mark.slow
def test_a_campaign_of_kills_while_what_is_stored_changes(reference: Reference, tmp_path: Path) -> None:
    changed = list[int]()

    def check(lineage: Lineage, ended: Ended) -> None:
        seen: dict[int, Ways] = {}
        ways_of(lineage.launch.checkpoint, seen)
        newest = versions.load(lineage.launch.checkpoint, max(seen))
        changed.append(newest.storage.number)

    done = run_campaign(launches(reference), tmp_path, reference.output, KILLS, SEED, check=check)
    assert done.landed >= KILLS
    assert sum(number > 0 for number in changed) * 2 > len(changed), changed
