"""Runs that promise delays, killed inside a burst and run again: every batch obeys the ranges that were logged for it,
and what comes out is what the oracle makes of them, each window once.

`PENSTOCK_DRAG` makes records dear, so that the burst leaves no other way than to leave records unread, whatever the
machine. PENSTOCK_SEED moves the slow campaign; every failure names its seed and what was done.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import penstock as ps
from penstock.logical.owed import OWED
from penstock.logical.query import QuerySet
from penstock.runtime.batch.feed import read_offset
from penstock.state import identity
from penstock.state.protocol import Offset
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.faults import DRIVER, WORKER, Ended, Fault, Kill, Launch, Lineage, Strike
from penstock.testing.faults.campaign import WITH_SPARK, WITHOUT_SPARK, Blows, random_kills
from penstock.testing.oracle.triage import expect_triaged, key_of, whole_run
from penstock.triage.picks import DROP
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
# Promises leave no time for this one, so most of what it waits for is given up.
PLAIN = (
    "CREATE QUERY plain AS SELECT src, count(*) AS n, sum(bytes) AS total FROM flows [RANGE '2 seconds'] GROUP BY src;"
)


@dataclass(frozen=True)
class Burst:
    """An app on a stream with a burst in it, and the same with a query that promises nothing."""

    app: Path
    mixed: Path
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
    app, mixed = place / "app.sql", place / "mixed.sql"
    app.write_text(APP.format(place=place, speed=SPEED))
    mixed.write_text((APP + PLAIN).format(place=place, speed=f"{SPEED}, kept = '1 second'"))
    return Burst(app, mixed, data)


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


def watermarks(offsets: Sequence[Offset], stream: str) -> list[int | None]:
    """After each batch: what the next one knew before it; after the last one, what all records say."""
    known = [offset.stream(stream).watermark for offset in offsets[1:]]
    last = offsets[-1].stream(stream)
    come = max(time for time in (last.reached, last.tick) if time is not None)
    return [*known, come - 100_000]


def assert_as_logged(lineage: Lineage, ended: Ended, app: Path, data: pa.Table) -> dict[str, set[int]]:
    """Compare what a lineage has left behind; gives the k that the ranges of each stream have."""
    story = "\n".join(lineage.log)
    assert ended.code == 0, f"{story}\n{ended.messages[-3000:]}"
    assert ended.summary is not None
    made = lineage.launch
    offsets = offsets_of(made)
    assert [offset.n for offset in offsets] == list(range(1, len(offsets) + 1)), story
    assert_account_closes(ended.summary)
    output = faults.collect(made.output)
    assert not output.leftovers, story
    asked = ps.App(master="process").sql(app.read_text()).query_set()
    return {
        stream.name: _compared(ended.summary, output.rows, offsets, made, asked, stream.name, data, story)
        for stream in asked.streams
    }


def _compared(
    summary: dict[str, Any],
    rows: Mapping[str, pa.Table],
    offsets: Sequence[Offset],
    made: Launch,
    app: QuerySet,
    stream: str,
    data: pa.Table,
    story: str,
) -> set[int]:
    for batch in summary["batches"]:  # done as decided
        assert batch["offsets"]["streams"][stream]["row"] == offsets[batch["n"]].stream(stream).row, story
    ends = [offset.stream(stream).row for offset in offsets]
    batches = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    given = [(count, offset.stream(stream).ranges) for count, offset in zip(batches, offsets, strict=True) if count]
    ranges = whole_run([count for count, _ in given], [logged for _, logged in given])
    own, key = QuerySet((app.stream(stream),), app.readers(stream)), key_of(identity.load(made.checkpoint).id, stream)
    expected = expect_triaged(own, data, batches, ranges, key, watermarks=watermarks(offsets, stream))
    for query in own.queries:
        wanted = expected.rows[query.name]
        if query.promise is None:
            wanted = wanted.select([*(column.name for column in query.select), "window_start", "window_end"])
        assert_same_rows(rows[query.name], wanted, f"{story}\n{query.name}")
        account = summary["queries"][query.name]["accounting"]
        assert_same_account(account, expected.accounts[query.name], f"{story}\n{query.name}")
    told = summary["accounting"]
    assert_same_account(told if "input" in told else told[stream], expected.stream, story)
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
        assert max(assert_as_logged(lineage, ended, burst.app, burst.data)[STREAM]) > 0, lineage.log
    finally:
        lineage.clean_up()


def test_what_was_given_up_stays_so_after_kills(burst: Burst, tmp_path: Path) -> None:
    lineage = Lineage(launch(burst.mixed, tmp_path), tmp_path / "logs")
    kills = [Kill(Fault("manifest.write", 7)), Kill(strike=Strike(DRIVER, 9)), Kill(Fault("sink.rename", 3))]
    choose = random.Random(2)
    try:
        for kill in [*kills, Kill()]:
            ended, _ = lineage.disturb(kill, choose)
            if ended.code == 0:
                break
        steps = assert_as_logged(lineage, ended, burst.mixed, burst.data)
        assert DROP not in steps[STREAM], lineage.log
        assert steps[STREAM + OWED] == {0, DROP}, lineage.log
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
            steps |= assert_as_logged(lineage, ended, burst.app, burst.data)[STREAM]
        finally:
            lineage.clean_up()
        assert number <= KILLS, "most kills come too late"
    assert max(steps) > 0, f"seed {SEED}: no burst left anything unread"
