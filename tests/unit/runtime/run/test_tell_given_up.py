"""Records that waited too long are told in the log: once for each stream, and where they were to be read alone."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.logical.owed import with_owed
from penstock.logical.resolve.app import resolve_app
from penstock.runtime.batch.held import Held
from penstock.runtime.batch.report import BatchReport, Peaks
from penstock.runtime.run.given_up import TellGivenUp
from penstock.sharing.plan import unshared_plans
from penstock.sinks.base import Owner
from penstock.state import versions
from penstock.state.lease import acquire
from penstock.state.manifest import first_manifest
from penstock.state.protocol import Offset, StreamOffset, Volume
from penstock.state.versions import Version
from penstock.triage.picks import DROP

STREAM = """CREATE STREAM s (ts TIMESTAMP, a INT) FROM 'replay:parquet:x' WITH (kept = '5 minutes')
            WATERMARK ts DELAY '1 second';
CREATE QUERY soon AS SELECT count(*) AS n FROM s [RANGE '1 minute'] LIMIT DELAY TO '2 seconds';
CREATE QUERY all AS SELECT a, count(*) AS n FROM s [RANGE '1 minute'] GROUP BY a;
"""


def observer(folder: Path) -> TellGivenUp:
    app = with_owed(resolve_app(STREAM, "app.sql", lambda uri, options: ()), lambda stream: True)
    (folder / versions.FOLDER).mkdir()
    versions.store(folder, Version(0, app, unshared_plans(app), {}))
    return TellGivenUp(Held(folder, Owner("me", str(folder)), acquire(folder, [])))


def observe(observer: TellGivenUp, **ranges: tuple[tuple[int, int], ...]) -> None:
    streams = {name.replace("_", ":"): StreamOffset(one[-1][0], ranges=one) for name, one in ranges.items()}
    offset = Offset(1, streams=streams)
    report = BatchReport(0, 5, None, offset, {}, 1, 0.0, 0.0, 0.0, Peaks(), Volume(), 0)
    observer(report, replace(first_manifest(), offset=offset))


def test_once_for_each_stream(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    observing = observer(tmp_path)
    with caplog.at_level(logging.INFO, "penstock.given_up"):
        observe(observing, s=((900, DROP),), s_owed=((900, 0),))  # dropped in time, by --overload
        assert not caplog.records
        observe(observing, s=((1_900, 4),), s_owed=((1_200, DROP), (1_900, 0)))
        observe(observing, s=((2_900, 4),), s_owed=((2_200, DROP), (2_900, 0)))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert vars(record)["facts"] == {"stream": "s", "before": 1_200, "queries": ["all"]}
    assert record.getMessage() == (
        "records of the stream 's' are given up, now those before record 1,200: they waited longer than 5 minutes for "
        "'all', which count them as triaged and lack them in their results; keep them longer (option 'kept'), run "
        "fewer queries, or give the run more cores"
    )
