"""`explain --analyze` on Spark: what a plan did beside what was predicted, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.app.api import App

APP = """
CREATE STREAM flows FROM 'generate:flows' WITH (rows = 60000, flow_length = 10) WATERMARK ts DELAY '1 second';
CREATE QUERY talkers INTO 'csv:${out}/talkers' AS SELECT src, count(*) AS n FROM flows [RANGE '1 minute'] GROUP BY src;
CREATE QUERY pairs INTO 'parquet:${out}/pairs' AS
  SELECT src, dst, sum(bytes) AS bytes FROM flows [RANGE '1 minute'] GROUP BY src, dst;
CREATE QUERY services INTO 'console:' AS
  SELECT src, dport, count(*) AS n FROM flows [RANGE '5 minutes'] WHERE proto = 6 GROUP BY src, dport;
CREATE QUERY busy AS SELECT max(n) AS most FROM talkers [RANGE '5 minutes'];
"""


def test_analyze(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "app.sql").write_text(APP)
    (tmp_path / "tmp").mkdir()
    command = ["explain", "app.sql", "--set", f"out={tmp_path}/out", "--analyze", "--plan", "gc", "--memory", "65536",
               "--batch-rows", "20000", "--parallelism", "2", "--json", "--plot", "plan.png"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "penstock.app.cli", *command],
        capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    flows, talkers = json.loads(done.stdout)["streams"]
    assert flows["measured"]["rows"] == 60_000
    assert flows["measured"]["tasks"] >= 3
    assert flows["measured"]["fitted"]["insert"]["cost"] > 0
    assert any(one["table"] == "direct" and len(one["queries"]) > 1 for one in flows["relations"])
    check_flow(flows)
    # Queries on results have a plan of their own, of which nothing is known before.
    assert "nothing is known" in talkers["why"]
    (busy,) = talkers["relations"]
    assert busy["measured"]["probes"] == talkers["measured"]["rows"] > 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert "picture" in done.stderr
    assert "Traceback" not in done.stderr
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["app.sql", "plan.png", "tmp"]
    assert not list((tmp_path / "tmp").glob("penstock*"))


def check_flow(explained: dict[str, Any]) -> None:
    """What leaves a table reaches all that it feeds, but for what a query does not choose."""
    relations = explained["relations"]
    for one in relations:
        found = one["measured"]
        assert found["bytes"] > 0
        if one["parent"] is None:
            assert found["probes"] <= 60_000
            continue
        above = relations[one["parent"]]["measured"]
        passed = above["evictions"] + round(above["flushed_per_task"] * explained["measured"]["tasks"])
        assert found["probes"] <= passed
        if one["name"] != "services" and "services" not in one.get("queries", ()):
            assert found["probes"] == passed


def test_sinks_of_an_app_are_not_touched(spark: SparkSession) -> None:
    app, seen = App(spark), []
    app.stream("flows", "generate:flows", delay="1 second", options={"rows": "20000"})
    app.query("nets", "SELECT src/16 AS net, count(*) AS n FROM flows [RANGE '1 minute'] GROUP BY src/16",
              sink=lambda frame, batch: seen.append(batch))  # fmt: skip
    text = app.explain(analyze=True)
    assert "measured" in text
    assert "of 20,000 in" in text
    assert seen == []
    assert spark.range(3).count() == 3  # the session is the user's
    assert app.explain().splitlines()[1:3] == text.splitlines()[1:3]
