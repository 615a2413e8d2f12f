"""Promises that are shorter than what results take are told in the log: once, by what batches cost."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.runtime.batch.held import Held
from penstock.runtime.batch.report import BatchReport, Late, Peaks
from penstock.runtime.run.promised import LAST, TellPromises, batch_cost, close_cost
from penstock.sharing.plan import unshared_plans
from penstock.sinks.base import Owner
from penstock.state import versions
from penstock.state.lease import acquire
from penstock.state.manifest import first_manifest
from penstock.state.protocol import Clock, Offset, StreamOffset, Timings, Volume
from penstock.state.versions import Version

STREAM = """CREATE STREAM s (ts TIMESTAMP, a INT) FROM 'replay:parquet:x' WITH (speed = 2)
            WATERMARK ts DELAY '1 second';"""
QUERY = "CREATE QUERY {} AS SELECT count(*) AS n FROM s [RANGE '1 minute'] LIMIT DELAY TO '{} milliseconds';"


def batch(read: int = 1_000, left: int = 0, instants: int = 1, compacted: bool = False, close: float = 0.3) -> Timings:
    """It costs 0.1 s in its tasks and 0.05 s besides, a record 0.1 ms."""
    tasks, merge = 0.1 + read * 1e-4, close * instants
    return Timings(read, left, instants, compacted, tasks, merge, tasks + merge + 0.05)


def observer(folder: Path, **promises: int) -> TellPromises:
    """`promises` are in milliseconds."""
    queries = "\n".join(QUERY.format(name, promise) for name, promise in promises.items())
    app = resolve_app(STREAM + queries, "app.sql", lambda uri, options: ())
    (folder / versions.FOLDER).mkdir()
    versions.store(folder, Version(0, app, unshared_plans(app), {}))
    return TellPromises(Held(folder, Owner("me", str(folder)), acquire(folder, [])))


def observe(observer: TellPromises, timings: Timings | None, *late: str) -> None:
    offset = Offset(1, streams={"s": StreamOffset(5, clock=Clock(0, 0, 2.0))})
    closed = {name: Late(1, 0.1, 1.0, 0) for name in late}
    report = BatchReport(0, 5, None, offset, {}, 1, 0.0, 0.0, 0.0, Peaks(), Volume(), 0, late=closed)
    observer(report, replace(first_manifest(), offset=offset, timings=timings))


def told(caught: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    assert all(record.levelno == logging.WARNING for record in caught.records)
    return [vars(record)["facts"] for record in caught.records]


def test_a_promise_below_what_results_take(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    observing = observer(tmp_path, tight=1_000, good=1_200)
    with caplog.at_level(logging.INFO, "penstock.promise"):
        for size in range(1, 20):
            observe(observing, batch(read=1_000 * (size % 5)), "tight", "good")
    assert told(caplog) == [
        {
            "query": "tight",
            "promise": 1.0,
            "least": pytest.approx(0.5 + 2 * 0.15 + 0.3),
            "watermark": 0.5,
            "batch": pytest.approx(0.15),
            "close": pytest.approx(0.3),
        }
    ]
    assert caplog.messages[0] == (
        "query 'tight' promises a delay of 1 second, 0.10 s less than its results take: 0.50 s until the watermark "
        "passes, 2 batches of 0.15 s, 0.30 s to close windows; promise a longer delay (LIMIT DELAY TO), run fewer "
        "queries, or give the run more cores"
    )


def test_nothing_is_said_before_enough_is_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    observing = observer(tmp_path, tight=500)
    with caplog.at_level(logging.INFO, "penstock.promise"):
        observe(observing, None, "tight")  # nothing is live
        observe(observing, batch(close=90.0), "tight")  # workers load what they run
        for size in range(1, 4):
            observe(observing, batch(read=1_000 * size), "tight")
        for _ in range(9):
            observe(observing, batch(left=5, compacted=True, close=50.0), "tight")
        assert not caplog.records
        observe(observing, batch(), "tight")
    assert [one["query"] for one in told(caplog)] == ["tight"]


def test_one_slow_batch_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    observing = observer(tmp_path, good=1_200)
    with caplog.at_level(logging.INFO, "penstock.promise"):
        for at in range(40):
            observe(observing, batch(read=1_000 + 1_000 * (at % 4), close=9.0 if at % 10 == 5 else 0.3), "good")
    assert not caplog.records


def test_what_a_batch_costs() -> None:
    mixed = deque((batch(read) for read in (1_000, 50_000, 3_000, 700)), LAST)
    assert batch_cost(mixed) == pytest.approx(0.15)
    alike = deque((batch(read) for read in (1_000, 1_100, 1_050, 1_200)), LAST)
    assert batch_cost(alike) == pytest.approx(0.05)  # what their tasks cost at least is not known
    assert close_cost(deque([batch(instants=3, close=0.2)])) == pytest.approx(0.2)
