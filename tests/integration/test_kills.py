"""Kill it at any moment, run it again: the output is the same, once.

A reference run in this process, undisturbed; then runs of the command line that are killed at named points and
at random moments, driver, JVM and Python workers, several times on one checkpoint, and at last run to the end.
PENSTOCK_SEED moves the slow campaign; every failure names its seed and what was done.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.app.state_view import state_of
from penstock.sources.base import Split
from penstock.sources.generate.source import open_generate
from penstock.state import manifest as manifests
from penstock.state.rings import CAPACITY
from penstock.state.windows import ACCOUNTS
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_rows, assert_same_windows
from penstock.testing.faults import (
    JVM,
    Ended,
    Fault,
    Kill,
    Launch,
    Lineage,
    Output,
    Running,
    Strike,
    run_campaign,
    ways,
)
from penstock.testing.faults.campaign import WORKER_POINTS
from support.calling import Caller

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
ROWS, BATCHES = 400_000, 24
BATCH_ROWS = ROWS // BATCHES
BUDGET = 2  # seconds for planning: enough for the same plan each time, however busy the machine is
ASKED = ("--replan", "off", "--plan-budget", str(BUDGET))
KILLS, KILLS_PER_LINEAGE = 25, 5

APP = """
CREATE STREAM packets FROM 'parquet:{trace}' WATERMARK ts DELAY '300 milliseconds';
CREATE QUERY sources AS SELECT src, count(*) AS n, sum(bytes) AS total
  FROM packets [RANGE '1 second' SLIDE '1 second'] GROUP BY src;
CREATE QUERY hosts AS SELECT host, proto, count(*) AS n, min(host) AS low, max(note) AS high
  FROM packets [RANGE '2 seconds' SLIDE '2 seconds'] GROUP BY host, proto;
CREATE QUERY ports AS SELECT dport, max(bytes) AS largest, avg(bytes) AS mean
  FROM packets [RANGE '1 second' SLIDE '1 second'] WHERE proto = 6 GROUP BY dport HAVING count(*) > 2;
CREATE QUERY networks AS SELECT src/16 AS network, count(note) AS notes
  FROM packets [RANGE '3 seconds' SLIDE '3 seconds'] GROUP BY src/16;
CREATE QUERY long AS SELECT proto, note, count(*) AS n
  FROM packets [RANGE '7 seconds' SLIDE '7 seconds'] WHERE bytes > 100 GROUP BY proto, note;
CREATE QUERY sliding AS SELECT host, count(*) AS n, max(note) AS high
  FROM packets [RANGE '5 seconds' SLIDE '700 milliseconds'] GROUP BY host ORDER BY n DESC LIMIT 20;
CREATE QUERY sofar AS SELECT proto, note, count(*) AS n, max(src) AS last
  FROM packets [WINDOW UNTIL NOW] GROUP BY proto, note EVERY 2 SECONDS;
CREATE QUERY counted AS SELECT dport, count(*) AS n FROM packets [ROWS 9000 SLIDE 5000] GROUP BY dport;
CREATE QUERY details AS SELECT proto, count(DISTINCT src) AS sources, percentile(bytes, 0.9) AS large,
  entropy(dport) AS bits, approx_count_distinct(dport) AS ports, approx_percentile(bytes, 0.5) AS half
  FROM packets [RANGE '3 seconds' SLIDE '1 second'] GROUP BY proto;
CREATE QUERY listed AS SELECT frequent(dport, 0.05) AS port FROM packets [RANGE '2 seconds'];
CREATE QUERY busiest AS SELECT max(n) AS most, count(*) AS hosts, sum(total) AS bytes
  FROM sources [RANGE '3 seconds' SLIDE '1 second'];
"""
KEYS = {
    "sources": ["src"],
    "hosts": ["host", "proto"],
    "ports": ["dport"],
    "networks": ["network"],
    "long": ["proto", "note"],
    "sliding": ["host"],
    "sofar": ["proto", "note"],
    "counted": ["dport"],
    "details": ["proto"],
    "listed": ["port"],
    "busiest": [],
}


@dataclass(frozen=True)
class Reference:
    """What every run must give."""

    folder: Path
    output: Output
    digests: dict[str, str]
    summary: dict[str, Any]
    windows: dict[str, Any]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "trace.parquet"
    write_trace(path, SEED)
    return path


@pytest.fixture(scope="module")
def app(trace: Path) -> Path:
    path = trace.with_name("app.sql")
    path.write_text(APP.format(trace=trace))
    return path


@pytest.fixture(scope="module")
def reference(spark: SparkSession, app: Path, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    import penstock as ps

    place = tmp_path_factory.mktemp("reference")
    running = ps.App(spark=spark).sql(app.read_text())
    run = running.start(
        str(place / "checkpoint"), output=str(place / "out"), batch_rows=BATCH_ROWS, replan="off", plan_budget=BUDGET
    )
    run.await_end()
    output = faults.collect(place / "out")
    digests = {name: faults.digest(rows) for name, rows in output.rows.items()}
    return Reference(place / "out", output, digests, run.summary(), window_accounts(place / "checkpoint"))


def new_lineage(app: Path, place: Path) -> Lineage:
    """Plans stay, so that work can be compared; `test_replanned_kills` has those that change."""
    return Lineage(Launch(app, place / "checkpoint", place / "out", BATCH_ROWS, ASKED), place / "logs")


def window_accounts(checkpoint: Path) -> dict[str, Any]:
    """All windows that are kept, of every query."""
    found: dict[str, Any] = state_of(str(checkpoint), CAPACITY)["windows"]
    return found


def write_trace(path: Path, seed: int) -> None:
    """A bursty stream with strings, NULLs, late tuples and tuples without a time."""
    source = open_generate("bursty", {"rows": str(ROWS), "seed": str(seed), "rate": "15000", "clients": "3000"})
    columns = ["ts", "src", "dport", "proto", "bytes"]
    made = pa.Table.from_batches(source.read(Split(0, ROWS), columns, ROWS))
    dice = np.random.default_rng(seed)
    times = made.column("ts").to_numpy().astype("datetime64[us]").astype(np.int64)
    back = np.where(dice.random(ROWS) < 0.02, dice.integers(0, 4_000_000, ROWS), dice.integers(0, 200_000, ROWS))
    timeless = dice.random(ROWS) < 0.001
    kind = made.schema.field("ts").type
    numbers = dice.zipf(1.3, ROWS) % 5_000
    hosts = pa.array([f"host-{n}.example" if n % 97 else "" for n in numbers.tolist()])
    noted = pa.array(dice.integers(0, 50, ROWS), mask=dice.random(ROWS) < 0.1)
    notes = pa.array([f"{n:x}é" for n in range(50)]).take(noted)
    made = made.set_column(0, "ts", pa.array(times - back, mask=timeless).cast(kind))
    made = made.append_column("host", hosts).append_column("note", notes)
    pq.write_table(made, path, row_group_size=BATCH_ROWS // 2)


def check_finished(lineage: Lineage, ended: Ended, reference: Reference) -> None:
    """The output, the account and the checkpoint of an ended run are those of the undisturbed one."""
    story = "\n".join([f"seed {SEED}", *lineage.log])
    assert ended.code == 0, f"{story}\n{ended.messages[-3000:]}"
    assert ended.summary is not None, story
    output = faults.collect(lineage.launch.output)
    for name, rows in output.rows.items():
        if faults.digest(rows) != reference.digests[name]:
            assert_same_rows(rows, reference.output.rows[name], f"{story}\nquery {name}")
            pytest.fail(f"{story}\nquery {name}: digests differ")
        check_once(rows, name, story)
    assert output.files == reference.output.files, story
    assert output.leftovers == (), story
    check_account(ended.summary, reference.summary, story)
    check_state(lineage.launch.checkpoint, ended.summary, story)
    check_windows(lineage.launch.checkpoint, reference, story)


def check_once(rows: pa.Table, query: str, story: str) -> None:
    """Each group of each window in one row."""
    keys = ["window_start", "window_end", *KEYS[query]]
    assert rows.group_by(keys).aggregate([]).num_rows == rows.num_rows, f"{story}\nquery {query} repeats a group"


def check_account(summary: dict[str, Any], expected: dict[str, Any], story: str) -> None:
    assert_account_closes(summary)
    assert summary["accounting"] == expected["accounting"], story
    assert summary["malformed"] == expected["malformed"], story
    for name, query in expected["queries"].items():
        found = summary["queries"][name]
        assert {**found, "path": ""} == {**query, "path": ""}, f"{story}\nquery {name}"
    # Which entries collide depends on how each worker packs its keys; a batch that counts twice would show.
    assert summary["work"]["naive_hash_operations"] == expected["work"]["naive_hash_operations"], story
    assert summary["work"]["hash_operations"] == pytest.approx(expected["work"]["hash_operations"], rel=0.02), story


def check_state(checkpoint: Path, summary: dict[str, Any], story: str) -> None:
    """`penstock state` of an ended run: free, ended, nothing live, the same account."""
    state = state_of(str(checkpoint))
    assert state["owner"] is None, story
    assert state["ended"] is True, story
    assert (state["segments"], any(state["panes"].values())) == ([], False), story
    assert state["accounting"]["streams"]["packets"] == summary["accounting"], story
    assert 1 <= state["files"]["manifests"] <= 3, story


def check_windows(checkpoint: Path, reference: Reference, story: str) -> None:
    """The account of every window, in one file per query."""
    found = window_accounts(checkpoint)
    for name, expected in reference.windows.items():
        assert found[name]["closed"] == expected["closed"], f"{story}\nquery {name}"
        assert_same_windows(found[name]["kept"], expected["kept"], f"{story}\nquery {name}")
    assert {path.name for path in (checkpoint / ACCOUNTS.folder).iterdir()} == set(KEYS), story


def test_the_reference_has_all_parts_of_an_account(reference: Reference) -> None:
    """Otherwise the comparisons below would prove less than they say."""
    account = reference.summary["accounting"]
    assert account["input"] == ROWS
    assert all(account[part] > 0 for part in ("exact", "malformed")), account
    assert reference.summary["queries"]["sources"]["accounting"]["late"] > 0
    assert reference.summary["queries"]["ports"]["accounting"]["filtered"] > 0
    assert all(rows.num_rows > 10 for rows in reference.output.rows.values())
    for name in ("sources", "hosts", "ports", "networks", "long"):  # windows that do not overlap
        told, windows = reference.summary["queries"][name], reference.windows[name]["kept"]
        assert len(windows) == told["windows"] > 2
        assert sum(window["exact"] for window in windows) == told["accounting"]["exact"]
    closing = [batch for batch in reference.summary["batches"] if batch["windows"]]
    assert len(closing) > BATCHES / 2
    assert reference.summary["state"]["compactions"] > 0


@pytest.mark.slow
def test_campaign(app: Path, reference: Reference, tmp_path: Path) -> None:
    """Kills that came too late (the run had ended) are made up for."""
    done = run_campaign(
        lambda place: new_lineage(app, place).launch, tmp_path, reference.output, KILLS, SEED, KILLS_PER_LINEAGE,
        lambda lineage, ended: check_finished(lineage, ended, reference),
    )  # fmt: skip
    assert done.landed >= KILLS
    print(f"{done.landed} kills in {done.lineages} lineages, {done.missed} came too late")


# A second run, signals, damage and changes: what a user must be told, and what must not happen.


@dataclass(frozen=True)
class Halfway:
    """A run that was killed right after a commit, and a copy to bring it back."""

    lineage: Lineage
    copy: Path

    def restore(self) -> Launch:
        launch = self.lineage.launch
        for place in (launch.checkpoint, launch.output):
            shutil.rmtree(place)
            shutil.copytree(self.copy / place.name, place)
        return launch


@pytest.fixture(scope="module")
def halfway(app: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Halfway]:
    place = tmp_path_factory.mktemp("halfway")
    lineage = new_lineage(app, place)
    ended, hit = lineage.disturb(Kill(Fault("manifest.written", 6)), random.Random(SEED))
    assert (hit, ended.code) == (True, -signal.SIGKILL)
    lineage.clean_up()
    for name in ("checkpoint", "out"):
        shutil.copytree(place / name, place / "copy" / name)
    made = Halfway(lineage, place / "copy")
    assert faults.targets(lineage.launch, "segment")
    yield made
    lineage.clean_up()


@pytest.fixture
def onward(halfway: Halfway) -> Iterator[Lineage]:
    """A lineage whose driver was killed at a point."""
    made = replace(halfway.lineage, launch=halfway.restore(), log=[*halfway.lineage.log], runs=[])
    yield made
    made.clean_up()


def answer(caller: Caller, launch: Launch) -> tuple[int, str]:
    """Exit code and messages of a run in this process."""
    done = caller.run(*launch.command()[3:])
    return done.returncode, done.stderr


def finished(caller: Caller, launch: Launch) -> Ended:
    """An undisturbed run in this process."""
    done = caller.run(*launch.command()[3:])
    return Ended(done.returncode, json.loads(done.stdout) if done.returncode == 0 else None, done.stderr, False)


def check_nothing_wrong_published(launch: Launch, reference: Reference, story: str) -> None:
    """Every file that readers see is as the undisturbed run wrote it."""
    for path in sorted(launch.output.glob("*/*.parquet")):
        name = str(path.relative_to(launch.output))
        assert name in reference.output.files, f"{story}: {name} is no result"
        expected = pq.read_table(reference.folder / name)
        assert faults.digest(pq.read_table(path)) == faults.digest(expected), f"{story}: {name} is wrong"


def test_killed_and_run_again(onward: Lineage, caller: Caller, reference: Reference) -> None:
    """The quick version: the driver at a point, then a worker at a point and the JVM at a random moment."""
    choose = random.Random(SEED)
    worker = Fault(choose.choice(WORKER_POINTS), choose.randint(1, 3))
    _, hit = onward.disturb(Kill(worker, Strike(JVM, 1, choose.uniform(0, 1))), choose)
    assert hit, onward.log
    assert faults.await_orphans(onward.runs[-1]) == []
    check_finished(onward, finished(caller, onward.launch), reference)


@pytest.mark.parametrize("flips", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_damaged_segment_ends_the_run(halfway: Halfway, caller: Caller, reference: Reference, flips: int) -> None:
    """Unless the damage is where no window that is still open looks: then the results are right all the same."""
    choose, told = random.Random(SEED), 0
    for number in range(flips + 5):
        launch = halfway.restore()
        path = choose.choice(faults.targets(launch, "segment"))
        each = list(ways(path.stat().st_size, 1, choose))
        damage = each[0] if number < flips else each[number - flips + 1]
        story = f"seed {SEED}, {path.name}: {damage.name}"
        faults.spoil(path, damage)
        code, messages = answer(caller, launch)
        assert code == 0 or str(path) in messages, f"{story}\n{messages}"
        told += check_told(launch, code, messages, reference, story)
    assert told > flips / 2


def check_told(launch: Launch, code: int, messages: str, reference: Reference, story: str) -> bool:
    """Damage was told, and nothing wrong published; or it did not matter, and everything is right."""
    if code == 0:
        faults.assert_same_output(launch.output, reference.output, story)
        return False
    assert code in (1, 2), story
    assert "hint:" in messages, f"{story}\n{messages}"
    check_nothing_wrong_published(launch, reference, story)
    return True


def test_a_damaged_manifest_ends_the_run(halfway: Halfway, caller: Caller, reference: Reference) -> None:
    choose = random.Random(SEED)
    launch = halfway.restore()
    path = manifests.path_of(launch.checkpoint, manifests.batches(launch.checkpoint)[-1])
    for damage in ways(path.stat().st_size, 10, choose):
        if damage.name == "gone":  # then the manifest before it counts
            continue
        what, launch = damage.name, halfway.restore()
        faults.spoil(path, damage)
        published = faults.collect(launch.output).files
        code, messages = answer(caller, launch)
        assert code in (1, 2), what
        assert f"{path} is damaged" in messages, f"{what}\n{messages}"
        assert faults.collect(launch.output).files == published, what


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["version", "identity", "spark"])
def test_damage_to_other_files_is_told_or_does_not_matter(
    halfway: Halfway, caller: Caller, reference: Reference, kind: str
) -> None:
    """Some files are not needed any more, as old entries of Spark's logs; then the run goes on to the right end."""
    choose = random.Random(SEED)
    for number in range(12):
        launch = halfway.restore()
        path = choose.choice(faults.targets(launch, kind))
        damage = list(ways(path.stat().st_size, 6, choose))[number % 11]
        story = f"seed {SEED}, {path.relative_to(launch.checkpoint)}: {damage.name}"
        faults.spoil(path, damage)
        code, messages = answer(caller, launch)
        check_told(launch, code, messages, reference, story)


@pytest.mark.slow
def test_damage_is_told_without_a_traceback(halfway: Halfway, reference: Reference) -> None:
    """The same from outside, with all that Spark and its processes print."""
    launch = halfway.restore()
    path = faults.targets(launch, "segment")[-1]  # of the newest batch: hardly a window of it has closed
    faults.spoil(path, faults.flip(path.stat().st_size // 3))
    ended = faults.run_to_end(launch, halfway.lineage.logs)
    assert ended.code in (1, 2)
    assert f"error: segment {path} is damaged" in ended.messages
    faults.assert_no_traceback(ended, "damaged")
    check_nothing_wrong_published(launch, reference, "damaged")


@pytest.mark.slow
def test_restored_it_goes_on(halfway: Halfway, caller: Caller, reference: Reference) -> None:
    """The damage above was the cause: the copy runs to the end."""
    launch = halfway.restore()
    assert answer(caller, launch)[0] == 0
    output = faults.collect(launch.output)
    assert {name: faults.digest(rows) for name, rows in output.rows.items()} == reference.digests
    assert output.files == reference.output.files


@pytest.mark.parametrize(
    "change",
    [("count(note) AS notes", "count(note) AS n"), ("'7 seconds'", "'8 seconds'"), ("'300 mill", "'400 mill")],
    ids=["query", "window", "watermark"],
)
def test_another_app_is_refused(halfway: Halfway, caller: Caller, tmp_path: Path, change: tuple[str, str]) -> None:
    launch = halfway.restore()
    changed = tmp_path / "app.sql"
    changed.write_text(launch.app.read_text().replace(*change))
    before = snapshot(launch)
    code, messages = answer(caller, replace(launch, app=changed))
    assert code == 2
    assert f"differs from the one that checkpoint {launch.checkpoint} was made with" in messages
    assert "hint:" in messages
    assert snapshot(launch) == before


def test_other_records_are_refused(halfway: Halfway, caller: Caller, trace: Path, tmp_path: Path) -> None:
    launch = halfway.restore()
    before, kept = snapshot(launch), tmp_path / "kept"
    trace.rename(kept)
    try:
        write_trace(trace, SEED + 1)
        code, messages = answer(caller, launch)
    finally:
        kept.replace(trace)
    assert code == 2
    assert f"file {trace}, which checkpoint {launch.checkpoint} reads, has changed" in messages
    assert "hint:" in messages
    assert snapshot(launch) == before


def snapshot(launch: Launch) -> list[tuple[str, int]]:
    """Names and sizes of all files of checkpoint and output."""
    paths = [*launch.checkpoint.rglob("*"), *launch.output.rglob("*")]
    return sorted((str(path), path.stat().st_size) for path in paths if path.is_file())


def test_signals_end_a_run_between_two_batches(onward: Lineage, caller: Caller, reference: Reference) -> None:
    """SIGTERM to the driver as from a service manager; SIGINT to the whole group as from a terminal.

    Before, a second run is refused, and the first one goes on.
    """
    for code, name, send in (
        (143, "SIGTERM", lambda running: os.kill(running.process.pid, signal.SIGTERM)),
        (130, "Ctrl-C", lambda running: os.killpg(running.process.pid, signal.SIGINT)),
    ):
        running = faults.start(onward.launch, onward.logs)
        onward.runs.append(running)
        assert faults.await_batches(running, 1)
        check_second_refused(running, caller)
        assert faults.await_batches(running, faults.committed(onward.launch.checkpoint) - running.batches_before + 2)
        send(running)
        ended = faults.wait(running)
        assert ended.code == code, ended.messages
        assert f"stopped by {name} before the sources ended; the next run on checkpoint " in ended.messages
        faults.assert_no_traceback(ended, "stopped by a signal")
        assert ended.summary is not None
        assert ended.summary["ended"] is False
        assert_account_closes(ended.summary)
        assert state_of(str(onward.launch.checkpoint))["owner"] is None
        check_nothing_wrong_published(onward.launch, reference, "stopped")
    check_finished(onward, finished(caller, onward.launch), reference)


def check_second_refused(running: Running, caller: Caller) -> None:
    code, messages = answer(caller, running.launch)
    assert code == 2
    assert f"in use by process {running.process.pid} on {socket.gethostname()}" in messages
    assert "hint:" in messages
