"""Sources and sinks that fail, stalls and wrong clocks: the same output, or one message and then the same output.

Each disturbed run is a process of its own; `faults.endure` compares with an undisturbed run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.testing import faults
from penstock.testing.faults import Fault, Launch, Output

DAY = 86_400
APP = """
CREATE STREAM s FROM 'generate:uniform' WITH (rows = 200000, cardinality = 50, rate = 2000)
  WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT a, count(*) AS n, sum(value) AS total FROM s [RANGE '20 seconds' SLIDE '5 seconds'] GROUP BY a;
CREATE QUERY top AS SELECT b, max(value) AS high FROM s [WINDOW 10 SECONDS] GROUP BY b ORDER BY high DESC, b LIMIT 5;
"""
BATCH_ROWS = 65_536


def launched(place: Path) -> Launch:
    place.mkdir(parents=True, exist_ok=True)
    (place / "app.sql").write_text(APP)
    return Launch(place / "app.sql", place / "ckpt", place / "out", BATCH_ROWS)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Output:
    launch = launched(tmp_path_factory.mktemp("reference"))
    ended = faults.run_to_end(launch, launch.app.parent / "logs")
    assert (ended.code, ended.messages) == (0, "")
    return faults.collect(launch.output)


def test_a_source_that_fails_once(reference: Output, tmp_path: Path) -> None:
    """The quick version of what follows."""
    ended = faults.endure(launched(tmp_path), tmp_path / "logs", reference, faults.source_fails("EIO", 3))
    assert ended.fired
    assert ended.code == 1
    assert "stream 's' cannot be read: Input/output error" in ended.messages


FAULTS = {
    "source once, later": faults.source_fails("EIO", 8),
    "source always": faults.source_fails("EIO", always=True),
    "source, from the third time on": faults.source_fails("ETIMEDOUT", 3, always=True),
    "stage once": faults.sink_fails("stage", "EIO"),
    "stage always": faults.sink_fails("stage", "EDQUOT", 2, always=True),
    "publish once": faults.sink_fails("publish", "EIO", 2),
    "publish always": faults.sink_fails("publish", "EIO", always=True),
    "publish, one file of several": Fault("sink.rename", 2, action="raise=EIO"),
    "segment": Fault("segment.write", 2, action="raise=EIO"),
    "segment, at its end": Fault("segment.close", 1, action="raise=ENOSPC"),
    "merge": Fault("merge.block", 3, action="raise=EIO"),
    "compaction": Fault("compaction.start", 1, action="raise=EIO"),
    "commit": Fault("manifest.write", 2, action="raise=EROFS"),
    "after the commit": Fault("manifest.written", 2, action="raise=EIO"),
    "garbage": Fault("garbage.delete", 1, action="raise=EIO"),
    "start": Fault("driver.start", 1, action="raise=EIO"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_something_fails(reference: Output, tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    ended = faults.endure(launched(tmp_path), tmp_path / "logs", reference, fault)
    if name != "compaction":  # this app has too few segments for one
        assert (ended.code, ended.fired) == (1, fault.once), ended.messages


@pytest.mark.slow
@pytest.mark.parametrize("point", ["source.read", "sink.stage", "sink.publish", "manifest.write"])
def test_a_stall_only_takes_time(reference: Output, tmp_path: Path, point: str) -> None:
    ended = faults.endure(launched(tmp_path), tmp_path / "logs", reference, faults.stall(point, 8.0))
    assert (ended.code, ended.fired) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("by", [-DAY, DAY, faults.jump(DAY, 9), faults.jump(-DAY, 9), faults.drift(1000)])
def test_a_wrong_clock_changes_nothing(reference: Output, tmp_path: Path, by: float | str) -> None:
    """Neither the results of a run nor whether the next one may start after a kill; and its times are no nonsense."""
    plain = launched(tmp_path)
    disturbed = faults.skewed(plain, by)
    killed = faults.run_to_end(disturbed, tmp_path / "logs", Fault("manifest.written", 1))
    assert killed.code == -9, killed.messages
    ended = faults.run_to_end(plain, tmp_path / "logs", Fault("manifest.write", 2))
    assert ended.code == -9, ended.messages
    ended = faults.endure(disturbed, tmp_path / "logs", reference)
    assert (ended.code, ended.messages) == (0, "")
    assert ended.summary is not None
    assert all(second >= 0 for second in [ended.summary["seconds"]["total"], *ended.summary["seconds"]["per_batch"]])


@pytest.mark.slow
def test_a_live_run_keeps_its_checkpoint_whatever_the_clock(tmp_path: Path) -> None:
    plain = launched(tmp_path)
    running = faults.start(plain, tmp_path / "logs", faults.stall("manifest.write", 60.0))
    try:
        assert faults.await_that(running, running.fired.exists)
        for by in (DAY, -DAY):
            refused = faults.run_to_end(faults.skewed(plain, by), tmp_path / "logs")
            faults.assert_one_message(refused, "a second run")
            assert refused.code == 2
            assert f"in use by process {running.process.pid}" in refused.messages
    finally:
        faults.clean_up(running)
