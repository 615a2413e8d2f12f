"""Runs that promise delays, killed inside a burst and run again: every batch obeys the ranges that were logged for it,
and what comes out is what the oracle makes of them, each window once.

`PENSTOCK_DRAG` makes records dear, so that the burst leaves no other way than to leave records unread, whatever the
machine. PENSTOCK_SEED moves the slow campaign; every failure names its seed and what was done.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import penstock as ps
from penstock.runtime.batch.feed import read_offset
from penstock.state import identity
from penstock.state.protocol import Offset
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.faults import DRIVER, WORKER, Ended, Fault, Kill, Launch, Lineage, Strike
from penstock.testing.faults.campaign import WITH_SPARK, WITHOUT_SPARK, Blows, random_kills
from penstock.testing.oracle.triage import expect_triaged, key_of, whole_run
from support import kept_decisions

SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
KILLS, PER_LINEAGE = 25, 6
BATCH_ROWS = 10_000  # what a run reads of the burst before it knows what batches cost is little of it
SPEED, SECOND = 10, 1_000_000
STREAM, DRAG = "flows", 100_000  # ns: a second of the clock has records for twenty seconds of one worker
RATES = (*[1_000] * 5, *[20_000] * 40, *[1_000] * 5)  # records in each second of the stream
APP = """
CREATE STREAM flows FROM 'replay:arrow:{place}/flows.arrow' WITH (speed = {speed}) WATERMARK ts DELAY '100 milliseconds'
  ON OVERLOAD KEEP RESERVOIR (100);
CREATE QUERY sources AS SELECT src, count(*) AS n, sum(bytes) AS total, avg(bytes) AS mean
  FROM flows [RANGE '2 seconds'] GROUP BY src LIMIT DELAY TO '2 seconds';
CREATE QUERY protocols AS SELECT proto, count(*) AS n, max(bytes) AS most, median(bytes) AS middle
  FROM flows [RANGE '4 seconds' SLIDE '2 seconds'] GROUP BY proto LIMIT DELAY TO '2 seconds';
CREATE QUERY large AS SELECT src, bytes FROM flows [RANGE '2 seconds'] WHERE bytes > 1400 LIMIT DELAY TO '3 seconds';
"""


@dataclass(frozen=True)
class Burst:
    """An app on a stream with a burst in it."""

    app: Path
    data: pa.Table


@dataclass(frozen=True)
class KeepingLaunch(Launch):
    """A run that keeps what it decides."""

    @property
    def kept(self) -> Path:
        return self.checkpoint.parent / "kept"

    def command(self) -> list[str]:
        python, _, _, *rest = super().command()
        return [python, str(Path(kept_decisions.__file__)), *rest]


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> Burst:
    place, dice = tmp_path_factory.mktemp("burst"), np.random.default_rng(7)
    seconds = np.repeat(np.arange(len(RATES)), RATES)
    rows = len(seconds)
    times = 1_700_000_000 * SECOND + seconds * SECOND + dice.integers(0, SECOND, rows)
    times = np.sort(times) - np.where(dice.random(rows) < 0.01, dice.integers(0, 200_000, rows), 0)
    data = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "src": np.minimum(dice.zipf(1.5, rows), 200),
            "proto": pa.array(dice.choice(["tcp", "udp", "icmp"], rows)),
            "bytes": dice.integers(40, 1500, rows),
        }
    )
    feather.write_feather(data, str(place / "flows.arrow"), compression="uncompressed")
    app = place / "app.sql"
    app.write_text(APP.format(place=place, speed=SPEED))
    return Burst(app, data)


def launch(app: Path, place: Path) -> KeepingLaunch:
    made = KeepingLaunch(
        app, place / "checkpoint", place / "out", BATCH_ROWS, ("--parallelism", "2", "--master", "process")
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {"PENSTOCK_DRAG": str(DRAG), kept_decisions.FOLDER: str(made.kept), "PYTHONPATH": paths}
    return KeepingLaunch(**{**made.__dict__, "environment": tuple(environment.items())})


def spark_launch(app: Path, place: Path) -> Launch:
    """Spark keeps what it has logged of all batches."""
    keeping = ("--conf", "spark.sql.streaming.minBatchesToRetain=1000")
    options, environment = ("--parallelism", "2", "--master", "local[2]", *keeping), (("PENSTOCK_DRAG", str(DRAG)),)
    return Launch(app, place / "checkpoint", place / "out", BATCH_ROWS, options, environment)


def offsets_of(made: Launch) -> list[Offset]:
    """All that was decided, in order."""
    if isinstance(made, KeepingLaunch):
        return kept_decisions.kept(made.kept)
    logged = made.checkpoint / "spark" / "offsets"
    return [read_offset(made.checkpoint, n) for n in sorted(int(one.name) for one in logged.glob("[0-9]*"))]


def watermarks(offsets: Sequence[Offset]) -> list[int | None]:
    """After each batch: what the next one knew before it; after the last one, what all records say."""
    known = [offset.stream(STREAM).watermark for offset in offsets[1:]]
    last = offsets[-1].stream(STREAM)
    come = max(time for time in (last.reached, last.tick) if time is not None)
    return [*known, come - 100_000]


def assert_as_logged(lineage: Lineage, ended: Ended, burst: Burst) -> set[int]:
    """Compare what a lineage has left behind; gives the k that its ranges have."""
    story = "\n".join(lineage.log)
    assert ended.code == 0, f"{story}\n{ended.messages[-3000:]}"
    assert ended.summary is not None
    made = lineage.launch
    offsets = offsets_of(made)
    assert [offset.n for offset in offsets] == list(range(1, len(offsets) + 1)), story
    for batch in ended.summary["batches"]:  # done as decided
        assert batch["offsets"]["streams"][STREAM]["row"] == offsets[batch["n"]].stream(STREAM).row, story
    ends = [offset.stream(STREAM).row for offset in offsets]
    batches = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    given = [(rows, offset.stream(STREAM).ranges) for rows, offset in zip(batches, offsets, strict=True) if rows]
    ranges = whole_run([rows for rows, _ in given], [logged for _, logged in given])
    key = key_of(identity.load(made.checkpoint).id, STREAM)
    app = ps.App(master="process").sql(burst.app.read_text()).query_set()
    expected = expect_triaged(app, burst.data, batches, ranges, key, watermarks=watermarks(offsets))
    assert_account_closes(ended.summary)
    output = faults.collect(made.output)
    for name, rows in expected.rows.items():
        assert_same_rows(output.rows[name], rows, f"{story}\n{name}")
        assert_same_account(ended.summary["queries"][name]["accounting"], expected.accounts[name], f"{story}\n{name}")
    assert_same_account(ended.summary["accounting"], expected.stream, story)
    assert not output.leftovers, story
    return {k for _, k in ranges}


def test_a_burst_that_is_killed_a_few_times_is_estimated_as_was_logged(burst: Burst, tmp_path: Path) -> None:
    lineage = Lineage(launch(burst.app, tmp_path), tmp_path / "logs")
    kills = [
        Kill(Fault("manifest.write", 6)),
        Kill(Fault("sink.rename", 4)),
        Kill(strike=Strike(DRIVER, 8)),
        Kill(strike=Strike(WORKER, 8)),
    ]
    choose = random.Random(1)
    try:
        for kill in kills:
            ended, _ = lineage.disturb(kill, choose)
            if ended.code == 0:
                break
        else:
            ended, _ = lineage.disturb(Kill(), choose)
        assert max(assert_as_logged(lineage, ended, burst)) > 0, lineage.log
    finally:
        lineage.clean_up()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "blows"), [(launch, WITHOUT_SPARK), (spark_launch, WITH_SPARK)], ids=["process", "spark"]
)
def test_a_campaign_of_kills_inside_bursts(
    burst: Burst, tmp_path: Path, start: Callable[[Path, Path], Launch], blows: Blows
) -> None:
    choose = random.Random(SEED)
    waiting, landed, number, steps = random_kills(KILLS, choose, blows), 0, 0, set[int]()
    while landed < KILLS:
        number += 1
        place = tmp_path / f"lineage-{number}"
        lineage = Lineage(start(burst.app, place), place / "logs", [f"seed {SEED}, lineage {number}"])
        try:
            for _ in range(PER_LINEAGE):
                waiting = waiting or random_kills(max(1, KILLS - landed), choose, blows)
                kill = waiting.pop()
                ended, hit = lineage.disturb(kill, choose)
                landed += kill.count() if hit else 0
                if ended.code == 0:
                    break
            else:
                ended, _ = lineage.disturb(Kill(), choose)
            steps |= assert_as_logged(lineage, ended, burst)
        finally:
            lineage.clean_up()
        assert number <= KILLS, "most kills come too late"
    assert max(steps) > 0, f"seed {SEED}: no burst left anything unread"
