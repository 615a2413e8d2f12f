"""Kills while plans change: a stream that flips every few batches is planned anew, and again after each restart.

The output is that of an undisturbed run without sharing. PENSTOCK_SEED moves the campaign.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.state import versions
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_rows
from penstock.testing.faults import JVM, Ended, Fault, Kill, Launch, Lineage, Output, Strike, run_campaign
from penstock.testing.faults.campaign import WORKER_POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
BATCH_ROWS, FLIP, BATCHES = 40_000, 2, 12
OPTIONS = ("--memory", str(256 << 10), "--plan", "auto", "--replan", "auto")
KEYS = ["ab", "ac", "bc", "bd", "cd", "a", "b", "d", "abc"]
KILLS, KILLS_PER_LINEAGE = 15, 3


def write_trace(path: Path, seed: int) -> None:
    """Long flows of few addresses, then every tuple by itself, in turns; some values are NULL, some tuples late."""
    dice, n = np.random.default_rng(seed), BATCH_ROWS * FLIP
    halves = []
    for turn in range(BATCHES // FLIP):
        if turn % 2:
            halves.append({"a": dice.integers(0, 8, n), "b": dice.integers(0, 6, n), "c": dice.integers(0, 60, n)})
            halves[-1]["d"] = dice.integers(0, 3000, n)
        else:
            flows = np.repeat(dice.integers(0, 5000, n // 40 + 1), 40)[:n]
            sizes = {"a": 3000, "b": 3000, "c": 20, "d": 20}
            halves.append({name: dice.integers(0, size, 5000)[flows] for name, size in sizes.items()})
    columns = {name: np.concatenate([half[name] for half in halves]) for name in "abcd"}
    rows = n * len(halves)
    late = np.where(dice.random(rows) < 0.01, 200_000_000, 0)
    times = pa.array(np.arange(rows) * 1000 - late, pa.timestamp("us"))
    missing = pa.array(columns["d"], mask=dice.random(rows) < 0.01)
    table = pa.table({"ts": times, **columns, "d": missing, "v": dice.integers(0, 100, rows)})
    pq.write_table(table, path, row_group_size=BATCH_ROWS // 2)


def app_text(trace: Path) -> str:
    """Windows of one batch and of two."""
    text = [f"CREATE STREAM s FROM 'parquet:{trace}' WATERMARK ts DELAY '1 second';"]
    for number, keys in enumerate(KEYS):
        listed, window = ", ".join(keys), "40 seconds" if number % 3 else "80 seconds"
        where = "WHERE v > 5 " if keys == "bc" else ""
        text.append(
            f"CREATE QUERY q_{keys} AS SELECT {listed}, count(*) AS n, sum(v) AS t, max(v) AS most "
            f"FROM s [RANGE '{window}' SLIDE '40 seconds'] {where}GROUP BY {listed};"
        )
    return "\n".join(text)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flipping")
    write_trace(folder / "trace.parquet", SEED)
    (folder / "app.sql").write_text(app_text(folder / "trace.parquet"))
    return folder / "app.sql"


@pytest.fixture(scope="module")
def reference(spark: SparkSession, app: Path, tmp_path_factory: pytest.TempPathFactory) -> Output:
    import penstock as ps

    place = tmp_path_factory.mktemp("reference")
    running = ps.App(spark=spark).sql(app.read_text())
    run = running.start(str(place / "checkpoint"), output=str(place / "out"), batch_rows=BATCH_ROWS, plan="none")
    run.await_end()
    assert run.summary()["accounting"]["late"] > 0
    return faults.collect(place / "out")


@pytest.fixture
def lineage(app: Path, tmp_path: Path) -> Iterator[Lineage]:
    made = Lineage(launch(app, tmp_path), tmp_path / "logs")
    yield made
    made.clean_up()


def launch(app: Path, place: Path) -> Launch:
    return Launch(app, place / "checkpoint", place / "out", BATCH_ROWS, OPTIONS)


def named(checkpoint: Path) -> list[int]:
    """The versions that the offsets of all batches name."""
    logs = sorted((checkpoint / "spark" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [json.loads(path.read_text().splitlines()[2])["plan"] for path in logs]


def batches_of(output: Output) -> set[str]:
    """Query and batch of each file."""
    return {path.rsplit("-", 1)[0] for path in output.files}


def check_finished(lineage: Lineage, ended: Ended, reference: Output) -> None:
    story = "\n".join([f"seed {SEED}", *lineage.log])
    assert ended.code == 0, f"{story}\n{ended.messages[-3000:]}"
    assert ended.summary is not None, story
    assert_account_closes(ended.summary)
    output = faults.collect(lineage.launch.output)
    for name, rows in output.rows.items():
        assert_same_rows(rows, reference.rows[name], f"{story}\nquery {name}")
    assert batches_of(output) == batches_of(reference), story  # plans differ, and so do parts of a batch
    assert output.leftovers == (), story
    used = named(lineage.launch.checkpoint)
    assert used == sorted(used), f"{story}\nversions {used}"
    kept = list((lineage.launch.checkpoint / versions.FOLDER).glob("*.json"))
    assert 1 <= len(kept) <= 3, f"{story}\n{kept}"


def test_plans_change_before_and_after_a_kill(lineage: Lineage, reference: Output) -> None:
    """The driver, right after a commit: there are new plans before it, and after the restart."""
    choose, checkpoint = random.Random(SEED), lineage.launch.checkpoint
    ended, hit = lineage.disturb(Kill(Fault("manifest.written", 2 * FLIP)), choose)
    assert (hit, ended.code) == (True, -signal.SIGKILL), lineage.log
    first = named(checkpoint)
    assert len(set(first)) > 1, first
    check_finished(lineage, lineage.disturb(Kill(), choose)[0], reference)
    last = named(checkpoint)
    print(f"versions {first}, then {last}")
    assert max(last) > max(first) + 1, (first, last)


@pytest.mark.slow
def test_workers_and_the_jvm_are_killed_while_plans_change(lineage: Lineage, reference: Output) -> None:
    choose = random.Random(SEED)
    for visit in (2, 5):
        worker = Fault(choose.choice(WORKER_POINTS), visit + choose.randint(1, 3))
        _, hit = lineage.disturb(Kill(worker, Strike(JVM, 1, choose.uniform(0, 1))), choose)
        assert hit, lineage.log
    check_finished(lineage, lineage.disturb(Kill(), choose)[0], reference)


@pytest.mark.slow
def test_campaign_while_plans_change(app: Path, reference: Output, tmp_path: Path) -> None:
    done = run_campaign(
        lambda place: launch(app, place), tmp_path, reference, KILLS, SEED, KILLS_PER_LINEAGE,
        lambda lineage, ended: check_finished(lineage, ended, reference),
    )  # fmt: skip
    assert done.landed >= KILLS
    print(f"{done.landed} kills in {done.lineages} lineages, {done.missed} came too late")


def test_other_options_after_a_restart(app: Path, reference: Output, tmp_path: Path, spark: SparkSession) -> None:
    """Stopped in the middle and gone on with other plans, memory and allocation, each time: the same results."""
    import penstock as ps

    turns = [{"plan": "gc", "alloc": "pl", "memory": 8 << 10}, {"plan": "none", "memory": 1 << 16}, {"plan": "auto"}]
    used = []
    for number, planning in enumerate(turns):
        running = ps.App(spark=spark).sql(app.read_text())
        places = {"checkpoint": str(tmp_path / "checkpoint"), "output": str(tmp_path / "out")}
        run = running.start(**places, batch_rows=BATCH_ROWS, **planning)
        if number < 2:
            while run.progress()["batch"] < 2 + 2 * number:
                time.sleep(0.02)
            run.stop()
        else:
            run.await_end()
        used.append(named(tmp_path / "checkpoint")[-1])
    assert used[0] < used[1] < used[2], used
    output = faults.collect(tmp_path / "out")
    for name, rows in output.rows.items():
        assert_same_rows(rows, reference.rows[name], f"query {name}")
