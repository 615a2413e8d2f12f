"""A streaming DataFrame is planned by its first batch and, when it changes, anew; so are its plans after a restart."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.state import versions
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.runtime.run.run import Run

ROWS, FILES = 60_000, 5
KEYS = ["ab", "ac", "bc", "bd", "cd", "a", "b", "d", "abc"]


def write(folder: Path) -> None:
    """Two files of long flows, then files of tuples that are each by itself."""
    folder.mkdir()
    dice = np.random.default_rng(1)
    for number in range(FILES):
        if number < 2:
            flows = np.repeat(dice.integers(0, 5000, ROWS // 40), 40)
            columns = {
                name: dice.integers(0, size, 5000)[flows] for name, size in {"a": 3000, "b": 3000, "c": 20}.items()
            }
            columns["d"] = dice.integers(0, 20, 5000)[flows]
        else:
            sizes = {"a": 8, "b": 6, "c": 60, "d": 3000}
            columns = {name: dice.integers(0, size, ROWS) for name, size in sizes.items()}
        times = pa.array((number * ROWS + np.arange(ROWS)) * 1000, pa.timestamp("us", tz="UTC"))
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"ts": times, **columns, "v": dice.integers(0, 100, ROWS)}), path)
        os.utime(path, (number, number))  # Spark takes files in the order of their times


def frame(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder)).coalesce(1)


def started(spark: SparkSession, folder: Path, place: Path, **planning: object) -> Run:
    import penstock as ps

    app = ps.App(spark).stream("s", frame(spark, folder), delay="1 second")
    for keys in KEYS:
        listed = ", ".join(keys)
        app.query(f"q_{keys}", f"SELECT {listed}, sum(v) AS t FROM s [RANGE '60 seconds'] GROUP BY {listed}")
    run: Run = app.start(str(place / "checkpoint"), output=str(place / "out"), **planning)
    return run


def test_a_dataframe_is_planned_anew(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in")
    plain = started(spark, tmp_path / "in", tmp_path / "plain", plan="none")
    plain.await_end()
    used: dict[int, int] = {}
    run = started(spark, tmp_path / "in", tmp_path / "planned", memory=256 << 10)
    run.await_end()
    assert_account_closes(run.summary())
    reports = run.summary()["batches"]
    used = {batch["n"]: batch["offsets"]["plan"] for batch in reports}
    tables = [len(plan.tables) for plan in newest(tmp_path / "planned" / "checkpoint").plans.values()]
    print(used, tables, json.dumps(run.summary()["work"]))
    assert used[0] == 0
    assert used[1] >= 1, used  # by the sample of the first batch
    assert used[4] > used[2], used  # after the flip
    output, expected = (faults.collect(tmp_path / name / "out") for name in ("planned", "plain"))
    for name, rows in expected.rows.items():
        assert_same_rows(output.rows[name], rows, name)
    work = [each.summary()["work"]["hash_operations"] for each in (run, plain)]
    assert work[0] < work[1]


def newest(checkpoint: Path) -> versions.Version:
    number = versions.newest(checkpoint)
    assert number is not None
    return versions.load(checkpoint, number)
