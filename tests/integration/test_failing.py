"""Sources and sinks that fail, stalls and wrong clocks: the same output, or one message and then the same output.

Each disturbed run is a process of its own; `faults.endure` compares with an undisturbed run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.testing import faults
from penstock.testing.faults import Fault, Launch, Output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400
APP = """
CREATE STREAM s FROM 'generate:uniform' WITH (rows = 100000, cardinality = 50, rate = 2000)
  WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT a, count(*) AS n, sum(value) AS total FROM s [RANGE '20 seconds' SLIDE '5 seconds'] GROUP BY a;
CREATE QUERY top AS SELECT b, max(value) AS high FROM s [WINDOW 10 SECONDS] GROUP BY b ORDER BY high DESC, b LIMIT 5;
"""
BATCH_ROWS = 8_192


def launched(place: Path) -> Launch:
    place.mkdir(parents=True, exist_ok=True)
    (place / "app.sql").write_text(APP)
    return Launch(place / "app.sql", place / "ckpt", place / "out", BATCH_ROWS)


@pytest.fixture(scope="module")
def reference(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Output:
    import penstock as ps

    launch = launched(tmp_path_factory.mktemp("reference"))
    run = ps.App(spark=spark).sql(APP).start(
        str(launch.checkpoint), output=str(launch.output), batch_rows=BATCH_ROWS
    )  # fmt: skip
    run.await_end()
    return faults.collect(launch.output)


@pytest.mark.slow
def test_a_source_that_fails_once(reference: Output, tmp_path: Path) -> None:
    """The quick version of what follows."""
    ended = faults.endure(launched(tmp_path), tmp_path / "logs", reference, faults.source_fails("EIO", 3))
    assert ended.fired
    assert ended.code == 1
    assert "stream 's' cannot be read: Input/output error" in ended.messages


# One after the other on one checkpoint; visits are of batches that no run before has done.
READING = [
    faults.source_fails("EIO"),
    faults.source_fails("ETIMEDOUT", always=True),
    Fault("task.chunk", 2, action="raise=EIO"),
    Fault("segment.write", 3, action="raise=EIO"),
    Fault("segment.close", 3, action="raise=ENOSPC"),
    faults.source_fails("EIO", 6, always=True),
    Fault("batch.collected", 2, action="raise=EIO"),
    Fault("driver.start", action="raise=EIO"),
]
WRITING = [
    faults.sink_fails("stage", "EIO"),
    faults.sink_fails("publish", "EIO"),
    faults.sink_fails("publish", "EACCES", always=True),
    Fault("sink.rename", 2, action="raise=EIO"),
    faults.sink_fails("stage", "EDQUOT", 2, always=True),
    Fault("merge.block", 3, action="raise=EIO"),
    Fault("manifest.write", 2, action="raise=EROFS"),
    Fault("manifest.written", 2, action="raise=EIO"),
    Fault("garbage.delete", 2, action="raise=EIO"),
]


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [READING, WRITING], ids=["reading", "writing"])
def test_one_failure_after_the_other(reference: Output, tmp_path: Path, ordered: list[Fault]) -> None:
    launch = launched(tmp_path)
    for fault in ordered:
        ended = faults.run_to_end(launch, tmp_path / "logs", fault)
        story = f"{fault}, {faults.committed(launch.checkpoint)} batches"
        print(story, ended.messages)
        faults.assert_one_message(ended, story)
        assert (ended.code, ended.fired) == (1, fault.once), story
    ended = faults.endure(launch, tmp_path / "logs", reference)
    assert (ended.code, faults.said(ended)) == (0, "")


@pytest.mark.slow
def test_a_stall_only_takes_time(reference: Output, tmp_path: Path) -> None:
    """Wherever it is; killed in between, to have several in one lineage."""
    launch = launched(tmp_path)
    for point in ("source.read", "sink.stage", "sink.publish", "manifest.write"):
        running = faults.start(launch, tmp_path / "logs", faults.stall(point, 5.0))
        try:
            assert faults.await_that(running, running.fired.exists), running.stderr.read_text()
            before = faults.committed(launch.checkpoint)
            assert faults.await_that(running, lambda before=before: faults.committed(launch.checkpoint) > before + 1)
        finally:
            faults.clean_up(running)
    ended = faults.endure(launch, tmp_path / "logs", reference)
    assert (ended.code, faults.said(ended)) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("by", [DAY, faults.jump(-DAY, 9), faults.drift(1000)])
def test_a_wrong_clock_changes_nothing(reference: Output, tmp_path: Path, by: float | str) -> None:
    """Neither the results of a run nor whether the next one may start after a kill; and its times are no nonsense."""
    plain = launched(tmp_path)
    disturbed = faults.skewed(plain, by)
    for launch in (disturbed, plain, faults.skewed(plain, -DAY)):
        killed = faults.run_to_end(launch, tmp_path / "logs", Fault("manifest.written", 2))
        assert killed.code == -9, killed.messages
    ended = faults.endure(disturbed, tmp_path / "logs", reference)
    assert (ended.code, faults.said(ended)) == (0, "")
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
