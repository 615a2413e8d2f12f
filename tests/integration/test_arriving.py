"""A folder that receives files while the run is killed and restarted: each row once, as in the log of files.

`penstock run --until stopped` as a process of its own, over a folder into which files are renamed; the driver, the JVM
or a worker is killed at random moments and the run started again; at last it runs to the end.
PENSTOCK_SEED moves the slow campaign.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from penstock.logical.query import Field
from penstock.logical.resolve import resolve_app
from penstock.logical.types import INT, STRING, TIMESTAMP
from penstock.state import arrivals
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.faults import DRIVER, JVM, WORKER, Launch, Strike
from penstock.testing.oracle import expect

SEED = int(os.environ.get("PENSTOCK_SEED", "20261116"))
ROWS = 4_000
APP = """
CREATE STREAM s (ts TIMESTAMP, a INT, w STRING) FROM '{kind}:{folder}' WATERMARK ts DELAY '2 seconds';
CREATE QUERY sliding AS SELECT a, count(*) AS n, max(w) AS w FROM s [RANGE '9 seconds' SLIDE '4 seconds'] GROUP BY a;
CREATE QUERY words AS SELECT w, count(*) AS n FROM s [RANGE '10 seconds'] WHERE a <> 3 GROUP BY w;
CREATE QUERY sofar AS SELECT a, count(*) AS n FROM s [WINDOW UNTIL NOW] GROUP BY a EVERY 15 SECONDS;
CREATE QUERY counted AS SELECT count(*) AS n FROM s [ROWS 3000 SLIDE 1000];
"""
FIELDS = (Field("ts", TIMESTAMP), Field("a", INT), Field("w", STRING))


@dataclass(frozen=True)
class Sender:
    """Puts files into the folder, in an order that is not that of their names."""

    kind: str
    folder: Path
    data: pa.Table
    names: tuple[str, ...]

    def put(self, number: int) -> None:
        rows = self.data.slice(number * ROWS, ROWS)
        aside = self.folder / f".{number}.part"
        if self.kind == "csv":
            pc.write_csv(rows, aside)
        else:
            pq.write_table(rows, aside)
        aside.rename(self.folder / self.names[number])


def sender(kind: str, files: int, folder: Path, seed: int) -> Sender:
    dice = np.random.default_rng(seed)
    count = files * ROWS
    times = np.arange(count) * 5_000 + dice.integers(-3_500_000, 100_000, count) + 1_600_000_000_000_000
    words = pa.array([f"w{n}, é" for n in range(20)]).take(pa.array(dice.integers(0, 20, count)))
    columns = {
        "ts": pa.array(times, pa.timestamp("us")),
        "a": pa.array(dice.integers(0, 7, count), pa.int32()),
        "w": words,
    }
    folder.mkdir()
    names = [f"{n:02d}.{kind}" for n in range(files)]
    random.Random(seed).shuffle(names)
    return Sender(kind, folder, pa.table(columns), tuple(names))


def check(kind: str, files: int, kills: int, folder: Path, seed: int) -> None:
    choose = random.Random(seed)
    sent = sender(kind, files, folder / "in", seed)
    app = folder / "app.sql"
    app.write_text(APP.format(kind=kind, folder=sent.folder))
    launch = Launch(app, folder / "checkpoint", folder / "out", 3_000, ("--until", "stopped"))
    sent.put(0)
    left = list(range(1, files))
    for number in range(kills):
        running = faults.start(launch, folder / "logs")
        try:
            for _ in range(len(left) // (kills - number)):
                assert faults.await_batches(running, 1), running.stderr.read_text()
                sent.put(left.pop(0))
            blow = Strike(choose.choice((DRIVER, JVM, WORKER, DRIVER)), 1, choose.uniform(0, 1.5))
            victim = faults.strike(running, blow, choose)
            print(f"seed {seed}: {blow} hit {victim}")
            assert victim is not None
        finally:
            faults.clean_up(running)
    while left:
        sent.put(left.pop(0))
    ended = faults.run_to_end(replace(launch, options=("--until", "end")), folder / "logs")
    assert ended.code == 0, ended.messages
    assert ended.summary is not None
    compare(sent, launch, ended.summary, f"seed {seed}")


def compare(sent: Sender, launch: Launch, summary: dict[str, object], story: str) -> None:
    """Results and accounts are those of the files in the order of the log, cut as Spark's offsets say."""
    entries = arrivals.logged(launch.checkpoint, "s")
    assert sorted(Path(entry["path"]).name for entry in entries) == sorted(sent.names), story
    numbers = [sent.names.index(Path(entry["path"]).name) for entry in entries]
    data = pa.concat_tables([sent.data.slice(number * ROWS, ROWS) for number in numbers])
    asked = resolve_app(launch.app.read_text(), "app.sql", lambda uri, options: FIELDS)
    expected = expect(asked, data, cuts(launch.checkpoint))
    output = faults.collect(launch.output)
    assert_account_closes(summary)
    assert output.leftovers == (), story
    for name, rows in expected.rows.items():
        assert_same_rows(output.rows[name].cast(rows.schema), rows, f"{story}, query {name}")
        told = summary["queries"][name]["accounting"]  # type: ignore[index]
        assert_same_account(told, expected.accounts[name], f"{story}, query {name}")


def cuts(checkpoint: Path) -> list[int]:
    """Rows of every batch, from the offsets that Spark has logged."""
    paths = sorted((checkpoint / "spark" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    assert [int(path.name) for path in paths] == list(range(len(paths)))
    ends = [json.loads(path.read_text().splitlines()[2])["streams"]["s"]["row"] for path in paths]
    return np.diff([0, *ends]).tolist()


def test_killed_while_files_arrive(tmp_path: Path) -> None:
    check("parquet", 5, 2, tmp_path, SEED)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_killed_again_and_again(tmp_path: Path, number: int) -> None:
    check("csv" if number % 2 else "parquet", 12, 5, tmp_path, SEED + 1 + number)
