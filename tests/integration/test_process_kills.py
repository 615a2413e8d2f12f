"""Runs without Spark that are killed at any moment and run again: the output is the same, once.

The reference is a run in this process with one task at a time; those that are killed have workers. PENSTOCK_SEED moves
the slow campaign; every failure names its seed and what was done.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.sources.base import whole
from penstock.sources.generate.source import open_generate
from penstock.testing import faults
from penstock.testing.faults import DRIVER, WORKER, Fault, Kill, Launch, Lineage, Output, Strike, run_campaign

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
ROWS, BATCHES = 120_000, 20
KILLS = 25
APP = """
CREATE STREAM packets FROM 'parquet:{trace}' WATERMARK ts DELAY '300 milliseconds';
CREATE QUERY sources AS SELECT src, count(*) AS n, sum(bytes) AS total FROM packets [RANGE '1 second'] GROUP BY src;
CREATE QUERY pairs AS SELECT dport, proto, max(src) AS last
  FROM packets [RANGE '3 seconds' SLIDE '1 second'] GROUP BY dport, proto;
CREATE QUERY sofar AS SELECT proto, count(*) AS n FROM packets [WINDOW UNTIL NOW] GROUP BY proto EVERY 2 SECONDS;
CREATE QUERY details AS SELECT proto, count(DISTINCT src) AS sources, percentile(bytes, 0.9) AS large,
  entropy(dport) AS bits, approx_count_distinct(dport) AS ports, approx_percentile(bytes, 0.5) AS half
  FROM packets [RANGE '3 seconds' SLIDE '1 second'] GROUP BY proto;
CREATE QUERY listed AS SELECT frequent(dport, 0.05) AS port FROM packets [RANGE '2 seconds'];
CREATE QUERY busiest AS SELECT max(n) AS most, count(*) AS groups FROM sources [RANGE '2 seconds'];
"""


@dataclass(frozen=True)
class Reference:
    app: Path
    output: Output


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    place = tmp_path_factory.mktemp("reference")
    source = open_generate("clustered", {"rows": str(ROWS), "rate": "10000", "seed": "7"})
    read = source.read(whole(source), source.schema().names, ROWS)
    pq.write_table(pa.Table.from_batches(read), place / "trace.parquet", row_group_size=2_000)
    app = place / "app.sql"
    app.write_text(APP.format(trace=place / "trace.parquet"))
    run = ps.App(master="process").sql(app.read_text()).start(
        str(place / "checkpoint"), output=str(place / "out"), batch_rows=ROWS // BATCHES, parallelism=1
    )  # fmt: skip
    run.await_end()
    return Reference(app, faults.collect(place / "out"))


def launches(app: Path) -> Callable[[Path], Launch]:
    """Runs with two workers."""
    options = ("--parallelism", "2")
    return lambda place: Launch(app, place / "checkpoint", place / "out", ROWS // BATCHES, options).without_spark()


def test_a_few_kills_change_nothing(reference: Reference, tmp_path: Path) -> None:
    """The driver before and after a commit and between publishing files, a worker, and both at any moment."""
    lineage = Lineage(launches(reference.app)(tmp_path), tmp_path / "logs")
    kills = [
        Kill(Fault("manifest.write", 2)),
        Kill(Fault("sink.rename", 3)),
        Kill(Fault("manifest.written", 2)),
        Kill(Fault("segment.close", 3)),
        Kill(strike=Strike(DRIVER, 2)),
        Kill(strike=Strike(WORKER, 1)),
    ]
    choose = random.Random(1)
    try:
        for kill in kills:
            ended, hit = lineage.disturb(kill, choose)
            assert hit, lineage.log
            assert ended.code != 0 or kill.strike is not None, lineage.log
        ended, _ = lineage.disturb(Kill(), choose)
        assert ended.code == 0, ended.messages
        faults.assert_same_output(lineage.launch.output, reference.output, "\n".join(lineage.log))
    finally:
        lineage.clean_up()


@pytest.mark.slow
def test_a_campaign_of_kills_changes_nothing(reference: Reference, tmp_path: Path) -> None:
    done = run_campaign(launches(reference.app), tmp_path, reference.output, KILLS, SEED)
    assert done.landed >= KILLS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_signals_end_a_run_between_two_batches(reference: Reference, tmp_path: Path, number: int) -> None:
    """To all processes of the group, as a terminal and some service managers do."""
    lineage = Lineage(launches(reference.app)(tmp_path), tmp_path / "logs")
    try:
        later = faults.stall("manifest.write", 3.0, 3)  # else the run may be over before the signal
        running = faults.start(lineage.launch, lineage.logs, later)
        lineage.runs.append(running)
        assert faults.await_batches(running, 1)
        os.killpg(running.process.pid, number)
        ended = faults.wait(running)
        assert ended.code == 128 + number, ended.messages
        assert ended.messages.startswith("stopped by ")
        assert ended.messages.endswith(f" the next run on checkpoint {lineage.launch.checkpoint} goes on from there\n")
        faults.assert_no_traceback(ended, "stopped by a signal")
        assert ended.summary is not None
        assert ended.summary["ended"] is False
        assert faults.await_orphans(running) == []
        ended, _ = lineage.disturb(Kill(), random.Random(1))
        assert ended.code == 0, ended.messages
        faults.assert_same_output(lineage.launch.output, reference.output, "stopped by a signal and run again")
    finally:
        lineage.clean_up()
