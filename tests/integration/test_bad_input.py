"""Bad input and full disks as users meet them: the program as a process of its own, with all that it prints.

The messages themselves stand in tests/golden/cli; here some of those commands say the same from outside, and a run
whose disk is full ends with one message and goes on, once there is room, to the same results.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing import faults
from penstock.testing.faults import Disk, Launch, Output
from support.amounts import quick_and

GOLDEN = Path(__file__).parents[1] / "golden" / "cli"
FROM_OUTSIDE = ("app_missing", "no_command", "state_missing", "generate_unknown", "bench_unknown")
MORE_FROM_OUTSIDE = (
    "app_is_a_folder", "no_app", "state_without_checkpoint", "state_on_s3", "generate_nowhere", "generate_negative",
    "generate_option_form", "generate_into_a_folder",
)  # fmt: skip
KIB = 1 << 10
APP = """
CREATE STREAM s FROM 'generate:uniform' WITH (rows = 200000, cardinality = 1000, rate = 2000)
  WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT a, b, count(*) AS n, sum(value) AS total FROM s [WINDOW 20 SECONDS] GROUP BY a, b;
"""
OVERFLOW = """
CREATE STREAM s FROM 'generate:uniform' WITH (rows = 1000);
CREATE QUERY q AS SELECT sum(a * 0 + 9000000000000000000) AS total FROM s [WINDOW 1 HOUR];
"""


def penstock(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock.app.cli", *arguments],
        capture_output=True, text=True, cwd=folder, env=os.environ | environment, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", quick_and(FROM_OUTSIDE, MORE_FROM_OUTSIDE))
def test_the_same_from_outside(name: str, tmp_path: Path) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    command = golden.partition("\n")[0].removeprefix("$ penstock ")
    result = penstock(*shlex.split(command), folder=tmp_path)
    text = f"$ penstock {command}\nexit {result.returncode}\n-- stderr\n{result.stderr.rstrip()}\n"
    assert result.stdout == ""
    assert text.replace(str(tmp_path), "TMP") == golden


def test_a_failing_run_prints_one_message(tmp_path: Path) -> None:
    """With all that the JVM and the Python workers print."""
    (tmp_path / "app.sql").write_text(OVERFLOW)
    result = penstock("run", "app.sql", "--json", "--checkpoint", "ckpt", "--output", "out", folder=tmp_path)
    assert result.returncode == 1
    assert result.stdout == ""
    assert re.fullmatch(
        r"error: sum\(.*\) of query 'q' leaves BIGINT in the window that ends at 2026-01-01T01:00:00\.000000\n"
        r"  hint: .*\n",
        result.stderr,
    ), result.stderr
    assert list(tmp_path.glob("out/*/*.parquet")) == []


@pytest.fixture(params=[True, False], ids=["mounted", "limited"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Disk]:
    with faults.small_disk(tmp_path / "disk", mount=request.param) as disk:
        if request.param and disk.kind != faults.MOUNTED:
            pytest.skip("needs the right to mount a small file system")
        yield disk


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """The results of an undisturbed run."""
    folder = tmp_path_factory.mktemp("expected")
    (folder / "app.sql").write_text(APP)
    ended = faults.run_to_end(Launch(folder / "app.sql", folder / "ckpt", folder / "out", 60_000), folder / "logs")
    assert ended.code == 0, ended.messages
    return faults.collect(folder / "out")


ROOMS = [
    pytest.param("output", 20 * KIB, id="first results"),
    pytest.param("output", 400 * KIB, id="later results"),
    pytest.param("checkpoint", 8 * KIB, id="start"),
    pytest.param("checkpoint", 60 * KIB, id="first segments"),
    pytest.param("checkpoint", 700 * KIB, id="later segments"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "room"), ROOMS)
def test_a_full_disk(disk: Disk, expected: Output, tmp_path: Path, what: str, room: int) -> None:
    if disk.kind == faults.LIMITED and (what, room) != ("checkpoint", 60 * KIB):
        pytest.skip("a limit on the size of files is met by segments, and only there")
    (tmp_path / "app.sql").write_text(APP)
    places = {"output": tmp_path / "out", "checkpoint": tmp_path / "ckpt"} | {what: disk.folder / what}
    launch = Launch(tmp_path / "app.sql", places["checkpoint"], places["output"], 60_000)
    ended = faults.run_to_end(disk.filled(launch, room), tmp_path / "logs")
    assert ended.code == 1
    assert re.fullmatch(rf"error: .*{disk.message}.*\n  hint: make room.*\n", ended.messages), ended.messages
    assert str(places[what]) in ended.messages
    before = faults.collect(launch.output) if launch.output.exists() else None
    disk.clear()
    again = faults.run_to_end(launch, tmp_path / "logs")
    assert (again.code, faults.said(again)) == (0, "")
    faults.assert_same_output(launch.output, expected, f"{what}, {room} bytes")
    # What was there when the disk was full was whole: it is part of the results as it stood.
    assert before is None or set(before.files) <= set(faults.collect(launch.output).files)
