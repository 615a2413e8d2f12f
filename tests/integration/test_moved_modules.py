"""A checkpoint is data: one that was written before modules were moved still opens; nothing in it names a module."""

from __future__ import annotations

import base64
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.app.api import App
from penstock.app.state_view import state_of

PACKAGE = Path(__file__).parents[2] / "src" / "penstock"
APP = """CREATE STREAM s FROM 'parquet:{folder}/data' WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT a, count(*) AS n, avg(b) AS mean FROM s [WINDOW 1 MINUTE] WHERE a <> 5 GROUP BY a;
CREATE QUERY r AS SELECT a % 3 AS third, count(*) AS n FROM s [RANGE '2 minutes' SLIDE '30 seconds'] GROUP BY a % 3;
CREATE QUERY t AS SELECT max(n) AS most FROM q [WINDOW 2 MINUTES];
"""
BATCHES, ROWS = 3, 600
# As a refactoring would: files change their names and places, everything that imports them follows.
MOVED = {
    "sharing.plan": "sharing.plans",
    "sharing.options": "sharing.wishes",
    "logical.window": "logical.panes",
    "state.protocol": "state.agreed",
    "state.manifest": "state.snapshot",
}


def moved_package(place: Path) -> Path:
    """A copy of the package with some modules renamed. Kernels are left alone, or they would be compiled again."""
    copy = place / "penstock"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "kernels"))
    (copy / "kernels").symlink_to(PACKAGE / "kernels")
    for old, new in MOVED.items():
        (copy / Path(*old.split("."))).with_suffix(".py").rename((copy / Path(*new.split("."))).with_suffix(".py"))
    for path in copy.rglob("*.py"):
        text = path.read_text()
        for old, new in MOVED.items():
            text = re.sub(rf"\bpenstock\.{re.escape(old)}\b", f"penstock.{new}", text)
            (package, name), (_, last) = old.rsplit(".", 1), new.rsplit(".", 1)
            text = re.sub(rf"(from penstock\.{re.escape(package)} import ){name}\b", rf"\1{last}", text)
        path.write_text(text)
    return place


@pytest.fixture(scope="module")
def stopped(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped with windows open."""
    folder = tmp_path_factory.mktemp("moved")
    (folder / "data").mkdir()
    count = BATCHES * ROWS
    times = pa.array([number * 250_000 for number in range(count)], pa.timestamp("us"))
    table = pa.table({"ts": times, "a": [n % 7 for n in range(count)], "b": [n * 0.5 for n in range(count)]})
    pq.write_table(table, folder / "data" / "a.parquet", row_group_size=ROWS)
    text = APP.format(folder=folder)
    (folder / "app.sql").write_text(text)
    settings = {"output": str(folder / "out"), "batch_rows": ROWS, "until": "stopped"}
    run = App(spark).sql(text).start(str(folder / "ckpt"), **settings)  # type: ignore[arg-type]
    while run.progress()["rows"] < count:
        assert not run.await_end(1)
    run.stop()
    return folder


def test_no_file_of_a_checkpoint_names_a_module_or_is_pickled(stopped: Path) -> None:
    heads = [pickle.dumps(("x",), protocol)[:3] for protocol in (4, 5)]
    marks = [b"penstock.", *heads, *(base64.b64encode(head) for head in heads)]
    files = [path for path in (stopped / "ckpt").rglob("*") if path.is_file()]
    assert {path.relative_to(stopped / "ckpt").parts[0] for path in files} >= {"app.json", "versions", "manifests"}
    for path in files:
        data = path.read_bytes()
        # Sampled keys and states are any bytes: three of them may look like anything.
        known = marks[:1] if path.suffix in (".seg", ".sample") or path.parent.name == "windows" else marks
        assert [mark for mark in known if mark in data] == [], path


def test_a_checkpoint_written_before_modules_were_moved_still_opens(stopped: Path, tmp_path: Path) -> None:
    moved = moved_package(tmp_path / "src")

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(moved)}, cwd=tmp_path, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def penstock(*arguments: str) -> str:
        return python("-m", "penstock.app.cli", *arguments)

    assert python("-c", "import penstock.sharing.plans as found; print(found.__file__)").startswith(str(moved))
    checkpoint = str(stopped / "ckpt")
    assert json.loads(penstock("state", "--checkpoint", checkpoint, "--json")) == state_of(checkpoint)
    places = ("--checkpoint", checkpoint, "--output", str(stopped / "out"))
    summary = json.loads(penstock("run", str(stopped / "app.sql"), *places, "--quiet", "--json"))
    assert summary["ended"] is True
    assert summary["accounting"]["input"] == BATCHES * ROWS
    minutes = pq.read_table(stopped / "out" / "q").to_pylist()
    assert sum(row["n"] for row in minutes) == sum(1 for n in range(BATCHES * ROWS) if n % 7 != 5)
    assert len({(row["window_start"], row["a"]) for row in minutes}) == len(minutes)
