"""Files keep arriving while a run is killed and started again: every record counts once, in the order of the log.

`penstock run --until stopped` reads a folder into which files are renamed one after the other, under names in no
order. The driver is killed with SIGKILL again and again; at last a run with `--until end` closes all windows. The
order of files is the one that the checkpoint has logged, the batches are those that Spark has logged.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.state import arrivals
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.faults import DRIVER, Ended, Fault, Launch, Running, Strike
from penstock.testing.oracle.expected import expect

SEED = int(os.environ.get("PENSTOCK_SEED", "20261116"))
ROWS, BATCH_ROWS = 600, 400  # of a file; of a batch at most
START = 1_700_000_000_000_000
COLUMNS = "(ts TIMESTAMP, host STRING, size BIGINT)"
QUERIES = {
    "hosts": "SELECT host, count(*) AS n, sum(size) AS total FROM s [RANGE '5 seconds'] GROUP BY host",
    "slides": "SELECT host, count(*) AS n, max(size) AS most FROM s [RANGE '20 seconds' SLIDE '3 seconds'] "
    "GROUP BY host",
    "since": "SELECT host, count(*) AS n FROM s [WINDOW UNTIL NOW] GROUP BY host EVERY 10 SECONDS",
    "rows": "SELECT host, count(*) AS n, min(size) AS least FROM s [ROWS 1000 SLIDE 300] GROUP BY host",
    "most": "SELECT max(n) AS n, count(*) AS hosts FROM hosts [RANGE '30 seconds']",
}
KEYS = {"hosts": ["host"], "slides": ["host"], "since": ["host"], "rows": ["host"], "most": []}


def make_file(number: int) -> pa.Table:
    """The records of a file: three seconds, with some that are late and some without a time."""
    dice = np.random.default_rng(number)
    times = START + number * 3_000_000 + dice.integers(0, 3_000_000, ROWS) - dice.integers(0, 400_000, ROWS)
    times -= np.where(dice.random(ROWS) < 0.03, dice.integers(0, 15_000_000, ROWS), 0)
    hosts = pa.array([f"host {n}, rack {n % 3}" for n in range(12)])
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC"), mask=dice.random(ROWS) < 0.01),
            "host": hosts.take(pa.array(dice.integers(0, 12, ROWS), mask=dice.random(ROWS) < 0.05)),
            "size": pa.array(dice.integers(0, 10**6, ROWS), mask=dice.random(ROWS) < 0.05),
        }
    )


@dataclass
class Folder:
    """Files arrive in it, each whole at once: written under a hidden name, then renamed."""

    path: Path
    kind: str
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def put(self) -> None:
        number = len(self.tables)
        made = make_file(number)
        name = f"{random.Random(SEED + number).randrange(1 << 32):08x}-{number}.{self.kind}"
        aside = self.path / f".{name}"
        if self.kind == "csv":
            pyarrow.csv.write_csv(made, aside)
        else:
            pq.write_table(made, aside, row_group_size=250)
        self.tables[name] = made
        aside.rename(self.path / name)

    @property
    def rows(self) -> int:
        return ROWS * len(self.tables)


@dataclass
class Lineage:
    """Runs on one checkpoint. What Spark logs about batches is noted while it is there."""

    launch: Launch
    logs: Path
    runs: list[Running] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)

    def start(self, fault: Fault | None = None, until: str = "stopped") -> Running:
        running = faults.start(replace(self.launch, options=("--until", until)), self.logs, fault)
        self.runs.append(running)
        return running

    def end(self, running: Running) -> Ended:
        ended = faults.wait(running)
        self.story.append(f"exit {ended.code} after {faults.committed(self.launch.checkpoint)} batches")
        return ended

    def note(self) -> None:
        """Note the position after each batch in Spark's log, which keeps the last ones only."""
        for path in (self.launch.checkpoint / "spark" / "offsets").glob("[0-9]*"):
            number = int(path.name)
            if number not in self.positions:
                try:
                    self.positions[number] = json.loads(path.read_text().splitlines()[-1])["streams"]["s"]["row"]
                except FileNotFoundError:  # it was collected just now
                    continue

    def batches(self) -> list[int]:
        self.note()
        assert sorted(self.positions) == list(range(len(self.positions))), f"a batch was missed: {self.positions}"
        rows = [0, *(self.positions[number] for number in range(len(self.positions)))]
        return np.diff(rows).tolist()

    def row(self) -> int:
        self.note()
        return max(self.positions.values(), default=0)


@pytest.fixture
def watched(lineage: Lineage) -> Iterator[Lineage]:
    """Notes in a thread: Spark's log keeps ten batches."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            lineage.note()

    thread = threading.Thread(target=watch)
    thread.start()
    yield lineage
    done.set()
    thread.join()


@pytest.fixture
def kind() -> str:
    return "csv"


@pytest.fixture
def folder(tmp_path: Path, kind: str) -> Folder:
    (tmp_path / "in").mkdir()
    return Folder(tmp_path / "in", kind)


@pytest.fixture
def lineage(folder: Folder, tmp_path: Path) -> Iterator[Lineage]:
    app = tmp_path / "app.sql"
    app.write_text(app_text(folder))
    made = Lineage(Launch(app, tmp_path / "ckpt", tmp_path / "out", BATCH_ROWS), tmp_path / "logs")
    yield made
    for running in made.runs:
        faults.clean_up(running)


def app_text(folder: Folder) -> str:
    """The columns are declared: the run may start before the first file is there."""
    stream = f"CREATE STREAM s {COLUMNS} FROM '{folder.kind}:{folder.path}' WATERMARK ts DELAY '1 second';"
    return "\n".join([stream, *(f"CREATE QUERY {name} AS {text};" for name, text in QUERIES.items())])


def check(lineage: Lineage, folder: Folder, ended: Ended) -> None:
    """The output is what the oracle says of the logged files and batches."""
    story = f"seed {SEED}: {lineage.story}"
    assert ended.code == 0, f"{story}\n{ended.messages[-3000:]}"
    assert ended.summary is not None
    assert ended.summary["ended"] is True
    entries = arrivals.logged(lineage.launch.checkpoint, "s")
    names = [Path(entry.path).name for entry in entries]
    assert sorted(names) == sorted(folder.tables), story
    data = pa.concat_tables([folder.tables[name] for name in names])
    expected = expect(resolve_app(app_text(folder), "app", lambda *_: ()), data, lineage.batches())
    assert expected.accounts["hosts"].late > 0 < expected.accounts["hosts"].malformed
    output = faults.collect(lineage.launch.output)
    assert output.leftovers == (), story
    assert_account_closes(ended.summary)
    assert_same_account(ended.summary["accounting"], expected.stream, story)
    for name in QUERIES:
        rows, shown = output.rows[name], ended.summary["queries"][name]
        assert_same_rows(rows.cast(expected.rows[name].schema), expected.rows[name], f"{story}\nquery {name}")
        once = rows.group_by(["window_start", "window_end", *KEYS[name]]).aggregate([]).num_rows
        # Windows of rows are told apart by their times, which two of them may share.
        assert once == rows.num_rows or name == "rows", f"{story}\nquery {name} repeats a group"
        assert_same_account(shown["accounting"], expected.accounts[name], f"{story}\nquery {name}")
        assert shown["rows"] == rows.num_rows > 0


@pytest.mark.slow
def test_killed_while_files_arrive(watched: Lineage, folder: Folder) -> None:
    """The quick version: one kill right after a commit, one file that arrives while nothing runs."""
    running = watched.start(Fault("manifest.written", 3))
    for _ in range(3):
        folder.put()
    ended = watched.end(running)
    assert (ended.code, ended.fired) == (-signal.SIGKILL, True), ended.messages
    folder.put()
    check(watched, folder, watched.end(watched.start(until="end")))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_killed_again_and_again_while_files_arrive(watched: Lineage, folder: Folder) -> None:
    """Files arrive before, during and after each of six runs; five are killed, one is stopped."""
    choose = random.Random(SEED)
    kills: list[Strike | Fault] = [
        Strike(DRIVER, 2, choose.uniform(0, 1)),
        Fault("manifest.written", choose.randint(2, 4)),
        Strike(DRIVER, choose.randint(1, 3), choose.uniform(0, 1)),
        Fault("batch.collected", choose.randint(2, 4)),
        Strike(DRIVER, 1, choose.uniform(0, 2)),
    ]
    for kill in kills:
        folder.put()
        running = watched.start(kill if isinstance(kill, Fault) else None)
        feeder = threading.Thread(target=feed, args=(folder, running, choose.randint(4, 7)))
        feeder.start()
        if isinstance(kill, Strike):
            assert faults.strike(running, kill, choose) is not None
        ended = watched.end(running)
        feeder.join()
        assert ended.code == -signal.SIGKILL, ended.messages
    running = watched.start()
    folder.put()
    assert faults.await_that(running, lambda: watched.row() == folder.rows)
    os.kill(running.process.pid, signal.SIGTERM)
    stopped = watched.end(running)
    assert stopped.code == 0, stopped.messages
    assert stopped.summary is not None
    assert stopped.summary["ended"] is False
    folder.put()
    check(watched, folder, watched.end(watched.start(until="end")))


def feed(folder: Folder, running: Running, count: int) -> None:
    """Some files one by one; a run that has ended does not hold the last ones back."""
    for _ in range(count):
        folder.put()
        before = faults.committed(running.launch.checkpoint)
        faults.await_that(running, lambda before=before: faults.committed(running.launch.checkpoint) > before)
