"""A JVM that is killed, whenever it is: one message, always the same, and the next run goes on."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from penstock.runtime.spark.gone import FACT, HINT
from penstock.testing import faults
from penstock.testing.faults import JVM, Fault, Launch, Strike

APP = """
CREATE STREAM s FROM 'generate:uniform' WITH (rows = 100000, cardinality = 100, rate = 2000)
  WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT a, count(*) AS n FROM s [WINDOW 5 SECONDS] GROUP BY a;
"""
# Where the driver stalls while its JVM is killed; and a moment at which it waits for tasks.
MOMENTS = ("manifest.write", "sink.rename", "between", "starting")


@pytest.mark.parametrize(
    "moment", [pytest.param(one, marks=[] if one == "manifest.write" else [pytest.mark.slow]) for one in MOMENTS]
)
def test_the_message_is_always_the_same(moment: str, tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text(APP)
    launch = Launch(tmp_path / "app.sql", tmp_path / "ckpt", tmp_path / "out", 5_000)
    fault = None if moment in ("between", "starting") else Fault(moment, action="stall=3")
    running = faults.start(launch, tmp_path / "logs", fault)
    try:
        if fault is not None:
            assert faults.await_that(running, running.fired.exists)
        elif moment == "starting":  # not the one that is asked for its version
            assert faults.await_that(
                running, lambda: any(one.role == JVM and "SparkSubmit" in one.command for one in faults.alive(running))
            )
        batches = 2 if moment == "between" else 0
        assert faults.strike(running, Strike(JVM, batches), random.Random(1)) is not None
        ended = faults.wait(running)
        assert ended.code == (2 if moment == "starting" else 1), ended.messages
        if moment == "starting":
            early, late = "error: Spark's JVM does not start\n", "error: Spark could not be started on 'local[*]': "
            assert early in ended.messages or late in ended.messages
        else:
            assert f"error: {FACT}\n  hint: {HINT}\n" in ended.messages
        assert len(re.findall("(?m)^error: ", ended.messages)) == 1
        assert faults.await_orphans(running) == []
    finally:
        faults.clean_up(running)
