"""Queries come and go while files arrive, and from run to run; the others go on as if nothing had happened.

One run on a folder takes queries in and lets one go, between files; then it is stopped. On its checkpoint an app with
two more queries runs to the end, against the oracle that knows when each query began. Any other change of the app is
refused by the command line, with what has changed, and nothing is touched.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.app.state_view import state_of
from penstock.errors import ConfigError, QueryError
from penstock.logical.resolve.app import resolve_app
from penstock.testing import faults
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows, assert_same_windows
from penstock.testing.oracle.expected import Expected, expect
from support.calling import Caller

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtime.run.run import Run

FILES, ROWS, BATCH_ROWS = 5, 3_000, 2_000
START = 1_700_000_000_000_000
COLUMNS = "(ts TIMESTAMP, a INT, b DOUBLE)"
FIRST = {
    "slides": "SELECT a, count(*) AS n, avg(b) AS mean FROM s [RANGE '10 seconds' SLIDE '4 seconds'] GROUP BY a",
    "tumbles": "SELECT count(*) AS n FROM s [RANGE '8 seconds']",
    "since": "SELECT count(*) AS n FROM s [WINDOW UNTIL NOW] EVERY 7 SECONDS",
    "reads": "SELECT max(n) AS most, count(*) AS groups FROM slides [RANGE '20 seconds']",
}
ADDED = {
    "late_slides": "SELECT a, count(*) AS n FROM s [RANGE '10 seconds' SLIDE '5 seconds'] GROUP BY a",
    "late_since": "SELECT a, max(b) AS most FROM s [WINDOW UNTIL NOW] GROUP BY a EVERY 6 SECONDS",
    "late_rows": "SELECT a, count(*) AS n FROM s [ROWS 900 SLIDE 700] GROUP BY a",
    "late_reads": "SELECT sum(n) AS n FROM slides [RANGE '15 seconds']",
}
AT_RESTART = {
    "last_rows": "SELECT count(*) AS n, min(b) AS least FROM s [ROWS 100 SLIDE 70]",
    "last_tumbles": "SELECT a, count(*) AS n FROM s [RANGE '5 seconds'] GROUP BY a",
}
DROPPED = "tumbles"
KEPT = {name: text for name, text in (FIRST | ADDED).items() if name != DROPPED}


def make_records() -> pa.Table:
    """Records 10 ms apart, up to 3 s out of order, some of them far too late."""
    dice, count = np.random.default_rng(5), FILES * ROWS
    times = START + np.arange(count) * 10_000 + dice.integers(-3_000_000, 3_000_000, count)
    times -= np.where(dice.random(count) < 0.02, dice.integers(0, 20_000_000, count), 0)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "a": pa.array(dice.integers(-3, 4, count), pa.int32()),
            "b": dice.normal(5, 1, count),
        }
    )


@dataclass
class Stage:
    """A folder with files, the checkpoint and output of runs on it, and when queries were added."""

    place: Path
    data: pa.Table = field(default_factory=make_records)
    files: int = 0
    batches: list[int] = field(default_factory=list)
    since: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    dropped_at: int = 0  # the watermark then

    def put(self) -> None:
        part = self.data.slice(self.files * ROWS, ROWS)
        aside = self.place / "in" / f".{self.files}.parquet"
        pq.write_table(part, aside)
        aside.rename(aside.with_name(f"{self.files}.parquet"))
        self.files += 1

    def text(self, queries: dict[str, str], delay: str = "1 second") -> str:
        stream = f"CREATE STREAM s {COLUMNS} FROM 'parquet:{self.place}/in' WATERMARK ts DELAY '{delay}';"
        return "\n".join([stream, *(f"CREATE QUERY {name} AS {text};" for name, text in queries.items())])

    @property
    def settings(self) -> dict[str, Any]:
        return {"output": str(self.place / "out"), "batch_rows": BATCH_ROWS}

    def started(self, spark: SparkSession, queries: dict[str, str], until: str) -> Run:
        import penstock as ps

        run: Run = ps.App(spark).sql(self.text(queries)).start(str(self.place / "ckpt"), until=until, **self.settings)
        return run

    def moment(self, batches: int) -> tuple[int, int, int]:
        """What is known when a query is added now: greatest time, position, number of the next batch."""
        row = self.files * ROWS
        return int(self.data.column("ts")[:row].cast(pa.int64()).to_numpy().max()), row, batches

    def read_all(self, run: Run) -> None:
        deadline = time.monotonic() + 300
        while run.progress()["rows"] < self.files * ROWS:
            assert time.monotonic() < deadline, run.progress()
            run.await_end(1)

    def copies(self) -> list[tuple[Path, Path]]:
        return [(self.place / name, self.place / "copy" / name) for name in ("ckpt", "out", "in")]

    def restore(self) -> None:
        for now, copy in self.copies():
            shutil.rmtree(now)
            shutil.copytree(copy, now)

    def snapshot(self) -> list[tuple[str, int]]:
        """Names and sizes of all files of checkpoint and output."""
        paths = [path for name in ("ckpt", "out") for path in (self.place / name).rglob("*")]
        return sorted((str(path), path.stat().st_size) for path in paths if path.is_file())


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A run to which queries were added, from which one was dropped, stopped when it had read four files."""
    made = Stage(tmp_path_factory.mktemp("stage"))
    (made.place / "in").mkdir()
    made.put()
    run = made.started(spark, FIRST, "stopped")
    made.read_all(run)
    made.put()
    made.read_all(run)
    since = made.moment(run.progress()["batch"] + 1)
    for name, text in ADDED.items():
        run.add_query(name, text)
        made.since[name] = since
    made.put()
    made.read_all(run)
    check_refused_additions(run, made.place / "out")
    made.dropped_at = run.progress()["watermark"]
    run.drop_query(DROPPED)
    with pytest.raises(QueryError, match="'tumbles' is taken, or a dropped query had it"):
        run.add_query(DROPPED, FIRST[DROPPED])
    made.put()
    made.read_all(run)
    run.stop()
    summary = run.summary()
    assert set(summary["queries"]) == set(KEPT)
    assert summary["ended"] is False
    made.batches = [batch["rows"] for batch in summary["batches"]]
    for now, copy in made.copies():
        shutil.copytree(now, copy)
    return made


def check_refused_additions(run: Run, output: Path) -> None:
    """What cannot be added or dropped is said at once, and the run goes on without it."""
    before = run.summary()["plan"]["version"]
    for name, text, words in (
        ("slides", FIRST["slides"], "'slides' is taken"),
        ("Since", FIRST["since"], "'Since' is taken"),
        ("wrong", "SELECT colour, count(*) AS n FROM s [RANGE '1 second'] GROUP BY colour", "colour"),
        ("nowhere", "SELECT count(*) AS n FROM other [RANGE '1 second']", "other"),
    ):
        with pytest.raises(QueryError, match=words):
            run.add_query(name, text)
    with pytest.raises(ConfigError, match="both write to"):
        run.add_query("same_place", FIRST["since"], sink=f"parquet:{output}/since")
    with pytest.raises(ConfigError, match="query 'reads' reads the results of 'slides'"):
        run.drop_query("slides")
    with pytest.raises(ConfigError, match="there is no query 'none'"):
        run.drop_query("none")
    assert run.summary()["plan"]["version"] == before
    assert run.progress()["active"]


def expected_of(stage: Stage, queries: dict[str, str], batches: list[int]) -> Expected:
    app = resolve_app(stage.text(queries), "app", lambda *_: ())
    return expect(app, stage.data, batches, since=stage.since)


def test_queries_added_and_dropped(stage: Stage, spark: SparkSession) -> None:
    stage.restore()
    stage.since |= dict.fromkeys(AT_RESTART, stage.moment(len(stage.batches)))
    stage.put()
    try:
        run = stage.started(spark, KEPT | AT_RESTART, "end")
        run.await_end()
    finally:
        stage.files -= 1
    summary = run.summary()
    batches = stage.batches + [batch["rows"] for batch in summary["batches"]]
    expected = expected_of(stage, KEPT | AT_RESTART | {DROPPED: FIRST[DROPPED]}, batches)
    assert_account_closes(summary)
    assert set(summary["queries"]) == set(KEPT | AT_RESTART)
    for name, shown in summary["queries"].items():
        found = run.results(name).toArrow().cast(expected.rows[name].schema)
        assert_same_rows(found, expected.rows[name], name)
        assert_same_account(shown["accounting"], expected.accounts[name], name)
        assert shown["rows"] == expected.rows[name].num_rows > 0
        assert_same_windows(run.window_account(name), expected.windows[name], name)
    for name in set(stage.since) - {"late_reads"}:  # of the stream they read all that came since, late or not
        assert summary["queries"][name]["accounting"]["input"] == FILES * ROWS - stage.since[name][1]
    assert expected.accounts["slides"].late > 0
    check_dropped(stage, expected)


def check_dropped(stage: Stage, expected: Expected) -> None:
    """Of a dropped query there are the windows that were closed before, and no others."""
    rows = expected.rows[DROPPED]
    closed = pc.less_equal(rows.column("window_end").cast(pa.int64()), stage.dropped_at)
    found = faults.collect(stage.place / "out").rows[DROPPED]
    assert 0 < found.num_rows < rows.num_rows
    assert_same_rows(found.cast(rows.schema), rows.filter(closed), DROPPED)
    windows = [window for window in expected.windows[DROPPED] if window["end"] <= stage.dropped_at]
    kept = state_of(str(stage.place / "ckpt"))["windows"][DROPPED]
    assert kept["closed"] == len(windows)
    assert_same_windows(kept["kept"], windows, DROPPED)


# -- refused changes


def changed(name: str, old: str, new: str) -> dict[str, str]:
    assert old in KEPT[name]
    return KEPT | {name: KEPT[name].replace(old, new)}


QUERY, STREAM = "query 'slides' differs from the one that checkpoint", "stream 's' differs from the one that checkpoint"
REFUSED: dict[str, tuple[dict[str, str], str, str]] = {
    "window": (changed("slides", "SLIDE '4 seconds'", "SLIDE '5 seconds'"), QUERY, "its window changed"),
    "landmark": (changed("since", "EVERY 7 SECONDS", "EVERY 8 SECONDS"), "query 'since' differs", "its window changed"),
    "keys": (
        changed("slides", "GROUP BY a", "GROUP BY a, b"), QUERY, "its GROUP BY changed",
    ),
    "aggregates": (changed("slides", "avg(b)", "sum(b)"), QUERY, "its select list changed"),
    "an added query": (changed("late_rows", "ROWS 900", "ROWS 800"), "query 'late_rows' differs", "its window changed"),
    "what it reads": (
        KEPT | {"late_reads": ADDED["late_reads"].replace("slides", "late_slides")}, "query 'late_reads' differs",
        "what it reads changed",
    ),
    "a dropped name": (KEPT | {DROPPED: FIRST[DROPPED]}, "had a query 'tumbles' that was dropped", "under a new name"),
}  # fmt: skip


def refused(stage: Stage, caller: Caller, text: str, *options: str) -> str:
    """Messages of a run with this app that must be refused, and must leave everything as it was."""
    stage.restore()
    before = stage.snapshot()
    app = stage.place / "app.sql"
    app.write_text(text)
    common = ("--checkpoint", str(stage.place / "ckpt"), "--batch-rows", str(BATCH_ROWS), "--quiet")
    where = () if "--output" in options else ("--output", str(stage.place / "out"))
    done = caller.run("run", str(app), *common, *where, *options)
    code, messages = done.returncode, done.stderr
    assert code == 2, messages
    assert messages.startswith("error: ")
    assert "hint:" in messages
    assert "Traceback" not in messages
    assert stage.snapshot() == before
    return messages


@pytest.mark.parametrize("what", REFUSED)
def test_changed_queries_are_refused(what: str, stage: Stage, caller: Caller) -> None:
    queries, fact, difference = REFUSED[what]
    messages = refused(stage, caller, stage.text(queries))
    assert fact in messages
    assert difference in messages
    assert str(stage.place / "ckpt") in messages


def test_a_changed_place_is_refused(stage: Stage, caller: Caller) -> None:
    other = stage.place / "elsewhere"
    messages = refused(stage, caller, stage.text(KEPT), "--output", str(other))
    assert f"query 'slides' of checkpoint {stage.place / 'ckpt'} writes to {stage.place / 'out' / 'slides'}" in messages
    assert "--output" in messages
    into = stage.text(KEPT).replace("QUERY since AS", f"QUERY since INTO 'parquet:{other}' AS")
    assert "query 'since' differs" in (messages := refused(stage, caller, into))
    assert "its sink changed" in messages
    assert not other.exists()


def test_a_changed_stream_is_refused(stage: Stage, caller: Caller) -> None:
    text = stage.text(KEPT)
    for new, difference in (
        (stage.text(KEPT, delay="3 seconds"), "its watermark delay changed"),
        (text.replace("b DOUBLE", "b DOUBLE, c INT"), "differs"),  # as a source or by its columns
        (text.replace("DELAY '1 second'", "DELAY '1 second' MAX AHEAD '1 hour'"), "its MAX AHEAD changed"),
        (text.replace(f"{stage.place}/in'", f"{stage.place}/in/*.parquet'"), "its source changed"),
    ):
        messages = refused(stage, caller, new)
        assert STREAM in messages
        assert difference in messages


def test_the_same_app_is_not_refused(stage: Stage, caller: Caller) -> None:
    """Otherwise the refusals above could have any reason."""
    stage.restore()
    app = stage.place / "app.sql"
    app.write_text(stage.text(KEPT))
    places = ("--checkpoint", str(stage.place / "ckpt"), "--output", str(stage.place / "out"))
    done = caller.run("run", str(app), *places, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
