"""Packets in, nothing lost: kills on the road of captures, and a capture that grows while runs are killed.

A generated trace, half of it compressed, through monitoring queries. PENSTOCK_SEED moves the kills; every failure
names its seed and what was done.
"""

from __future__ import annotations

import lzma
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.data.frames import write_trace
from penstock.state import arrivals
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_rows
from penstock.testing.faults import DRIVER, Ended, Launch, Lineage, Output, Strike, run_campaign
from penstock.testing.oracle import database

SEED = int(os.environ.get("PENSTOCK_SEED", "20261116"))
KILLS = 50
PACKETS, RATE, BATCH_ROWS = 240_000, 8000.0, 10_000

APP = """
CREATE STREAM packets FROM 'pcap:{trace}' WATERMARK ts DELAY '200 milliseconds';
CREATE QUERY talkers AS SELECT src, count(*) AS n, sum(ip_length) AS bytes
  FROM packets [RANGE '1 second'] GROUP BY src;
CREATE QUERY pairs AS SELECT src/16 AS net, dst, count(*) AS n, min(length) AS least, max(length) AS most
  FROM packets [RANGE '5 seconds' SLIDE '700 milliseconds'] GROUP BY src/16, dst ORDER BY n DESC LIMIT 50;
CREATE QUERY opened AS SELECT dport, count(*) AS n
  FROM packets [RANGE '2 seconds'] WHERE proto = 6 AND tcp_flags % 64 = 2 GROUP BY dport;
CREATE QUERY sofar AS SELECT proto, count(*) AS n, avg(length) AS mean
  FROM packets [WINDOW UNTIL NOW] GROUP BY proto EVERY 3 SECONDS;
CREATE QUERY counted AS SELECT sport, count(*) AS n FROM packets [ROWS 9000 SLIDE 5000] GROUP BY sport;
CREATE QUERY busiest AS SELECT max(n) AS most, count(*) AS hosts FROM talkers [RANGE '3 seconds' SLIDE '1 second'];
"""


@dataclass(frozen=True)
class Trace:
    """A capture, what its packets say, and a folder that has it in two files."""

    capture: Path
    fields: Path
    folder: Path


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    place = tmp_path_factory.mktemp("trace")
    made = Trace(place / "trace.pcap", place / "fields.parquet", place / "parts")
    write_trace(PACKETS, RATE, made.capture, made.fields, lambda text: None)
    data = made.capture.read_bytes()
    record = (len(data) - 24) // PACKETS
    middle = 24 + record * (PACKETS // 2)
    made.folder.mkdir()
    (made.folder / "a.pcap").write_bytes(data[:middle])
    # A second file that ends inside its last record: one malformed packet, whatever happens.
    (made.folder / "b.pcap.xz").write_bytes(lzma.compress(data[:24] + data[middle:] + data[24:60], preset=0))
    return made


def launch(place: Path, source: Path, options: tuple[str, ...] = ()) -> Launch:
    place.mkdir(parents=True, exist_ok=True)
    app = place / "app.sql"
    app.write_text(APP.format(trace=source))
    return Launch(app, place / "ckpt", place / "out", BATCH_ROWS, options)


def run_once(place: Path, source: Path) -> tuple[Output, Ended]:
    ended = faults.run_to_end(launch(place, source), place / "logs")
    assert ended.code == 0, ended.messages
    return faults.collect(place / "out"), ended


def check_talkers(trace: Trace, output: Output) -> None:
    """The undisturbed run itself is right, by what the trace was made from."""
    expected = database.run(
        "SELECT src, count(*) AS n, sum(ip_length)::BIGINT AS bytes, ts // 1000000 AS second "
        "FROM fields GROUP BY src, ts // 1000000",
        {},
        fields=pq.read_table(trace.fields),
    )
    found = output.rows["talkers"]
    start = found["window_start"].cast(pa.int64()).to_numpy() // 1_000_000
    numbers = pa.array([int.from_bytes(map(int, text.split("."))) for text in found["src"].to_pylist()])
    ours = pa.table({"src": numbers, "n": found["n"], "bytes": found["bytes"], "second": pa.array(start)})
    assert_same_rows(ours.cast(expected.schema), expected, "talkers")


@pytest.mark.slow
def test_killed_at_random(trace: Trace, tmp_path: Path) -> None:
    output, ended = run_once(tmp_path / "reference", trace.folder)
    assert ended.summary is not None
    assert ended.summary["malformed"] == {"unreadable record: cut short by the end of the file": 1}
    assert ended.summary["malformed_places"] == {
        "unreadable record: cut short by the end of the file": [
            f"b.pcap.xz, packet {PACKETS // 2 + 1}, byte {24 + 80 * PACKETS // 2} unpacked"
        ]
    }
    check_talkers(trace, output)

    def check(lineage: Lineage, again: Ended) -> None:
        assert again.summary is not None
        assert ended.summary is not None
        assert_account_closes(again.summary)
        for part in ("accounting", "malformed", "malformed_places"):
            assert again.summary[part] == ended.summary[part], lineage.log

    done = run_campaign(lambda place: launch(place, trace.folder), tmp_path, output, KILLS, SEED, check=check)
    print(f"seed {done.seed}: {done.landed} kills in {done.lineages} lineages, {done.missed} came too late")
    assert done.landed >= KILLS


@pytest.mark.slow
def test_a_capture_that_grows(trace: Trace, tmp_path: Path) -> None:
    """Written in pieces that end anywhere while runs follow it and are killed; then read to the end."""
    reference, _ = run_once(tmp_path / "reference", trace.capture)
    choose = random.Random(SEED)
    data, live = trace.capture.read_bytes(), tmp_path / "live.pcap"
    following = launch(tmp_path / "live", live, ("--until", "stopped"))
    live.write_bytes(data[:17])  # not even the header is there
    written, rounds = 17, 0
    while written < len(data):
        running = faults.start(following, tmp_path / "live" / "logs")
        try:
            for _ in range(12):
                step = min(choose.randrange(1, 2 * len(data) // 48), len(data) - written)
                with live.open("ab") as file:
                    file.write(data[written : written + step])
                written += step
                time.sleep(choose.random())
            assert faults.await_batches(running, 3), running.stderr.read_text()
            faults.strike(running, Strike(DRIVER, delay=choose.random()), choose)
            assert faults.wait(running).code != 0
        finally:
            faults.clean_up(running)
        rounds += 1
    _, ended = run_once(tmp_path / "live", live)
    faults.assert_same_output(tmp_path / "live" / "out", reference, f"seed {SEED}, {rounds} runs killed")
    assert_account_closes(ended.summary or {})
    assert (ended.summary or {})["accounting"]["exact"] == PACKETS
    logs = list((tmp_path / "live" / "ckpt" / arrivals.FOLDER / "packets").iterdir())
    assert len(logs) <= arrivals.LONG + 1
