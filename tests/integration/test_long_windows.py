"""Windows far longer than a batch: right, and what is kept, read and held in memory does not grow with the stream.

An hour that slides by a second, over eight hours: the first fills the window, and from the third on everything must
stay as it is.
A landmark window whose groups are ten times what a task may hold. The figures are printed whatever pytest captures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest

from penstock.app.state_view import state_of
from penstock.testing.asserts import assert_account_closes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

HOUR = 3_600
FAN = 8  # panes that the state keeps together, and eights of those, and so on
TASKS = 2
MOST_SEGMENTS = 16 * TASKS
TIMEOUT = 900  # a guard against hanging, not a claim about speed

Connection = duckdb.DuckDBPyConnection
Say = Callable[[str], None]


def execute(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def generate(kind: str, path: Path, rows: int, **options: object) -> None:
    given = [word for name, value in options.items() for word in ("--option", f"{name}={value}")]
    execute("-m", "penstock.app.cli", "generate", kind, "-o", str(path), "--rows", str(rows), *given, "--quiet")


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Print figures past pytest's capture."""

    def show(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {text}", end="", flush=True)

    return show


def table(connection: Connection, text: str) -> list[tuple[Any, ...]]:
    return connection.sql(text).fetchall()


# -- an hour by the second

FLOWS, RATE, BATCHES = 1_008_000, 35, 160
GROUP_BYTES = 8  # of a group of one pane as stored: slot 1, src_as 2, count 1, sum 2, max 2
HOURS = "SELECT src_as, count(*) AS n, sum(bytes) AS b, max(bytes) AS m FROM flows"


@dataclass(frozen=True)
class Sample:
    """State after a batch, as `penstock state` tells it."""

    row: int
    watermark: int
    windows: int
    read: int
    kept: int
    segments: int
    manifest: int


def test_an_hour_that_slides_by_a_second(spark: SparkSession, tmp_path: Path, say: Say) -> None:
    import penstock as ps

    trace, checkpoint = tmp_path / "flows.parquet", str(tmp_path / "ckpt")
    generate("flows", trace, FLOWS, rate=RATE)
    samples: list[Sample] = []

    def note(report: Any, manifest: Any) -> None:
        found = state_of(checkpoint)
        assert found["batch"] == manifest.batch
        stream, windows = found["streams"]["flows"], found["results"]["hour"]["windows"]
        read, live = found["volume"]["read"], len(found["segments"])
        assert found["bytes_read_per_window"] == read // windows
        samples.append(
            Sample(stream["row"], stream["watermark"], windows, read, found["bytes"], live, found["manifest_bytes"])
        )

    app = ps.App(spark).sql(
        f"CREATE STREAM flows FROM 'parquet:{trace}' WATERMARK ts DELAY '2 seconds';"
        f"CREATE QUERY hour AS {HOURS} [RANGE '1 hour' SLIDE '1 second'] GROUP BY src_as;"
    )
    settings = {"output": str(tmp_path / "out"), "batch_rows": FLOWS // BATCHES, "parallelism": TASKS}
    run = app.start(checkpoint, listener=note, **settings)
    run.await_end()
    summary = run.summary()
    assert_account_closes(summary)
    assert summary["accounting"]["exact"] == FLOWS
    assert len(samples) >= BATCHES
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        columns = "epoch_us(ts) // 1000000 AS s, src_as::INT AS src_as, bytes, file_row_number AS row"
        source = f"read_parquet('{trace}', file_row_number = true)"
        connection.execute(f"CREATE TABLE flows AS SELECT {columns} FROM {source}")
        columns = "epoch_us(window_end) // 1000000 AS e, src_as, n, b, m"
        connection.execute(f"CREATE VIEW found AS SELECT {columns} FROM '{tmp_path}/out/hour/*.parquet'")
        check_hours(connection, summary["queries"]["hour"])
        check_reading(connection, samples, say)
        check_keeping(connection, samples, say)


def check_hours(connection: Connection, result: dict[str, Any]) -> None:
    """Every window once, every record in 3,600 windows, and fifty windows group for group."""
    bounds = "SELECT min(s), max(s), sum(bytes), count(DISTINCT s) FROM flows"
    ((first, last, total, seconds),) = table(connection, bounds)
    assert seconds > (last - first) // 2  # no hour is empty
    windows = last - first + HOUR
    found = "SELECT count(*), count(DISTINCT (e, src_as)), count(DISTINCT e), sum(n), sum(b) FROM found"
    ((rows, groups, ends, records, octets),) = table(connection, found)
    assert (result["windows"], ends) == (windows, windows)
    assert (result["rows"], groups) == (rows, rows)
    assert (records, octets) == (HOUR * FLOWS, HOUR * total)
    drawn = np.random.default_rng(3).integers(first + 1, last + HOUR, 48).tolist()
    connection.execute(f"CREATE TABLE chosen AS SELECT DISTINCT unnest({[first + 1, last + HOUR, *drawn]}) AS e")
    mine = "SELECT e, src_as, n, b, m FROM found JOIN chosen USING (e)"
    within = f"s >= e - {HOUR} AND s < e"
    theirs = HOURS.replace("SELECT", "SELECT e,").replace("sum(bytes)", "sum(bytes)::BIGINT")
    theirs = f"{theirs} JOIN chosen ON {within} GROUP BY e, src_as"
    assert table(connection, f"SELECT count(*) FROM ({theirs})") == table(connection, f"SELECT count(*) FROM ({mine})")
    assert table(connection, f"({mine}) EXCEPT ({theirs})") == []
    assert table(connection, f"({theirs}) EXCEPT ({mine})") == []


def check_reading(connection: Connection, samples: list[Sample], say: Say) -> None:
    """Bytes read a window, by quarter of the run: two hours each, in which segments are merged several times.

    How much is read goes up and down with every such merge; in the hour after the window is first full it is least.
    It is shared by the windows that a batch closes, here about 180; a batch that closes few reads far more for each.
    """
    quarters = [samples[BATCHES * i // 4 - 1] for i in range(1, 5)]
    each = [(b.read - a.read) / (b.windows - a.windows) for a, b in pairwise(quarters)]
    ((groups,),) = table(connection, f"SELECT count(DISTINCT (s, src_as)) * {HOUR} / (max(s) - min(s) + 1) FROM flows")
    panes = groups * GROUP_BYTES
    say(f"{samples[-1].windows:,} windows of {HOUR:,} panes in {len(samples)} batches")
    say(f"read a window in quarters 2, 3, 4 of the run: {', '.join(f'{count:,.0f}' for count in each)} B")
    say(f"all panes of a window: {groups:,.0f} groups, {panes:,.0f} B, {panes / max(each):.0f} × as much")
    assert each[2] <= 1.5 * each[0]
    assert max(each) <= panes / 10


def check_keeping(connection: Connection, samples: list[Sample], say: Say) -> None:
    """Bytes kept against one copy of the groups of open panes: by second, and by 8, 64 and 512 seconds.

    Open are the panes from the first one of the first open window on; a group takes its columns' bytes, no more.
    """
    copies, seconds, kept = [], [], [sample.kept for sample in samples[:-1]]  # at the end nothing is kept
    for sample in samples[:-1]:
        first = sample.watermark // 10**6 - HOUR + 1
        levels = ", ".join(f"count(DISTINCT (s // {FAN**level}, src_as))" for level in range(4))
        (counts,) = table(connection, f"SELECT {levels} FROM flows WHERE row < {sample.row} AND s >= {first}")
        copies.append(sample.kept / (GROUP_BYTES * sum(counts)))
        seconds.append(sample.kept / (GROUP_BYTES * counts[0]))
    half, sizes = len(kept) // 2, [sample.manifest for sample in samples]
    say(f"kept at most {max(kept[:half]):,} B in the first half of the run, {max(kept[half:]):,} B in the second:")
    say(f"at most {max(copies):.2f} × one copy of the open panes' groups at four levels,")
    say(f"at most {max(seconds):.2f} × one copy of them by the second alone")
    say(f"live segments at most {max(sample.segments for sample in samples)}, manifest at most {max(sizes):,} B")
    assert max(copies) <= 3
    assert max(kept[half:]) <= 1.5 * max(kept[:half])
    assert max(sample.segments for sample in samples) <= MOST_SEGMENTS
    assert max(sizes[half:-1]) <= 1.5 * max(sizes[:half])  # the last batch closes an hour of windows


# -- groups far beyond a task's memory

TUPLES, SECONDS, EVERY = 1_250_000, 96, 50
MANY, FEW = 80, 20  # values of each of three attributes: half a million groups, or 8,000 of the same records
TASK_MEMORY = 2 << 20
STATE_BYTES = 48  # of a group as stored: slot, a, b, c and count 1 each, sum 2 or 4, moments 40
COUNTING = "SELECT a, b, c, count(*) AS n, sum(value) AS v, stddev(value) AS d FROM tuples"
SCRIPT = """
import json, sys
import penstock as ps
from penstock.app.state_view import state_of

checkpoint, output, batch_rows, task_memory, tasks, text = sys.argv[1:]

def note(report, manifest):
    found = state_of(checkpoint)
    print(json.dumps({
        "row": found["streams"]["tuples"]["row"], "closed": report.closed, "kept": found["bytes"],
        "segments": len(found["segments"]), "manifest": found["manifest_bytes"],
    }))

app = ps.App(master=f"local[{tasks}]").sql(text)
run = app.start(checkpoint, output=output, batch_rows=int(batch_rows), task_memory=int(task_memory), listener=note)
run.await_end()
print(json.dumps(run.summary()))
app.close()
"""


def landmark(place: Path, cardinality: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A run in a process of its own, so that its workers' memory is its own: samples by batch, and the summary."""
    place.mkdir()
    generate("uniform", place / "tuples.parquet", TUPLES, rate=TUPLES / SECONDS, cardinality=cardinality)
    text = (
        f"CREATE STREAM tuples FROM 'parquet:{place}/tuples.parquet' WATERMARK ts DELAY '1 second';"
        f"CREATE QUERY all_groups AS {COUNTING} [WINDOW UNTIL NOW] GROUP BY a, b, c EVERY {EVERY} SECONDS;"
    )
    settings = (str(TUPLES // 25), str(TASK_MEMORY), str(TASKS))
    *samples, summary = map(
        json.loads, execute("-c", SCRIPT, str(place / "ckpt"), str(place / "out"), *settings, text).splitlines()
    )
    assert_account_closes(summary)
    assert summary["accounting"]["exact"] == TUPLES
    return samples, summary


def test_landmark_groups_of_ten_times_the_memory(tmp_path: Path, say: Say) -> None:
    _, small = landmark(tmp_path / "small", FEW)
    samples, large = landmark(tmp_path / "large", MANY)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        source = f"read_parquet('{tmp_path}/large/tuples.parquet', file_row_number = true)"
        connection.execute(f"CREATE TABLE tuples AS SELECT *, epoch_us(ts) // 1000000 AS s FROM {source}")
        connection.execute(f"CREATE VIEW found AS SELECT * FROM '{tmp_path}/large/out/all_groups/*.parquet'")
        groups = check_landmark(connection, large["queries"]["all_groups"])
        state = groups * STATE_BYTES
        say(f"{groups:,} groups, {state:,} B: {state / TASK_MEMORY:.1f} × the memory of a task")
        assert state >= 10 * TASK_MEMORY
        check_landmark_state(connection, samples, say)
    volume, windows = large["state"], large["queries"]["all_groups"]["windows"]
    say(f"read {volume['read']:,} B for {windows} windows, {volume['read'] / windows / state:.0f} × the groups each;")
    say(f"written {volume['written']:,} B, compacted {volume['compacted']:,} B in {volume['compactions']} compactions")
    for kind in ("lfta", "merge"):
        name = f"{kind}_above_baseline_bytes"
        say(f"{kind} tasks {large['memory'][name]:,} B above baseline; with few groups {small['memory'][name]:,} B")
        # The same records, batches and windows; what the groups add is less than they take even as stored.
        assert large["memory"][name] <= small["memory"][name] + 8 * TASK_MEMORY


def check_landmark(connection: Connection, result: dict[str, Any]) -> int:
    """All windows, group for group; returns the groups of the last one."""
    ((first, last),) = table(connection, "SELECT min(s), max(s) FROM tuples")
    start = first // EVERY * EVERY
    ends = list(range(start + EVERY, last // EVERY * EVERY + EVERY + 1, EVERY))
    assert result["windows"] == len(ends) >= 2
    groups = []
    for end in ends:
        connection.execute(f"CREATE OR REPLACE TABLE theirs AS {COUNTING} WHERE s < {end} GROUP BY a, b, c")
        within = f"epoch_us(window_end) = {end * 10**6} AND epoch_us(window_start) = {start * 10**6}"
        connection.execute(f"CREATE OR REPLACE TABLE mine AS SELECT a, b, c, n, v, d FROM found WHERE {within}")
        ((count,),) = table(connection, "SELECT count(*) FROM theirs")
        assert table(connection, "SELECT count(*) FROM mine") == [(count,)]
        same = "mine.n = theirs.n AND mine.v = theirs.v AND (mine.d IS NULL) = (theirs.d IS NULL)"
        near = "coalesce(abs(mine.d - theirs.d) <= 1e-9 * greatest(theirs.d, 1), true)"
        joined = f"SELECT count(*) FROM mine JOIN theirs USING (a, b, c) WHERE {same} AND {near}"
        assert table(connection, joined) == [(count,)]
        groups.append(count)
    assert table(connection, "SELECT count(*) FROM found") == [(sum(groups),)]
    assert result["rows"] == sum(groups)
    return int(groups[-1])


def check_landmark_state(connection: Connection, samples: list[dict[str, Any]], say: Say) -> None:
    """Bytes kept against one copy of the groups so far, and the manifests."""
    copies = []
    for sample in samples[:-1]:  # at the end nothing is kept
        come = f"SELECT count(DISTINCT (a, b, c)) FROM tuples WHERE file_row_number < {sample['row']}"
        ((groups,),) = table(connection, come)
        copies.append(sample["kept"] / (groups * STATE_BYTES))
    say(f"kept before the last batch {samples[-2]['kept']:,} B, {copies[-1]:.2f} × one copy of the groups so far;")
    say(f"at most {max(copies):.2f} ×, live segments at most {max(sample['segments'] for sample in samples)}")
    # A manifest has a line for each part of a closed window, and there are parts as a task's memory demands.
    quiet = [sample["manifest"] for sample in samples if not sample["closed"]]
    closing = [sample["manifest"] / sample["closed"] for sample in samples if sample["closed"]]
    say(f"manifest at most {max(quiet):,} B, of batches that close windows {max(closing):,.0f} B a window")
    assert max(copies) <= 3
    assert max(sample["segments"] for sample in samples) <= MOST_SEGMENTS
    assert max(quiet) <= 16 << 10
    assert max(closing) <= 64 << 10
