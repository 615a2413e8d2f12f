"""Files and folders that the user may not read or write: cli/*.txt are the whole messages.

Root may do everything, so a test that runs as root takes on another user's rights for the command; modules are loaded
before, by a run of the same command that may read and write.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Case, NoSpark, arrange, compare, penstock

NOBODY = 65534
QUERY = "CREATE QUERY q AS SELECT count(*) AS n FROM s [WINDOW 1 HOUR];\n"
GENERATED = "CREATE STREAM s FROM 'generate:uniform' WITH (rows = 1000);\n" + QUERY
PARQUET = "CREATE STREAM s FROM 'parquet:closed';\n" + QUERY
TABLE = pa.table({"ts": pa.array([0], pa.timestamp("us"))})


def closed(folder: Path) -> None:
    (folder / "closed").mkdir()
    pq.write_table(TABLE, folder / "closed" / "a.parquet")
    (folder / "closed").chmod(0)


def closed_files(folder: Path) -> None:
    (folder / "closed").mkdir()
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(TABLE, folder / "closed" / name)
    (folder / "closed" / "b.parquet").chmod(0)


def read_only(folder: Path) -> None:
    (folder / "kept").mkdir()
    (folder / "kept").chmod(0o555)


CASES = [
    Case("forbidden_app", "check app.sql", GENERATED, lambda folder: (folder / "app.sql").chmod(0)),
    Case("forbidden_folder", "check app.sql", PARQUET, closed),
    Case("forbidden_file", "check app.sql", PARQUET, closed_files),
    Case("forbidden_below", "check app.sql", PARQUET.replace("closed", "closed/a.parquet"), closed),
    Case("forbidden_output", "run app.sql --quiet --checkpoint ckpt --output kept", GENERATED, read_only),
    Case("forbidden_checkpoint", "run app.sql --quiet --checkpoint kept/ckpt --output out", GENERATED, read_only),
    Case("forbidden_state", "state --checkpoint closed", arrange=closed, code=1),
    Case("forbidden_generate", "generate flows -o kept/x.parquet --rows 10 --quiet", arrange=read_only, code=1),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others can reach, unlike those of pytest."""
    path = Path(tempfile.mkdtemp(prefix="penstock-forbidden-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def somebody_else() -> Iterator[None]:
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message(
    case: Case, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: NoSpark())
    if os.geteuid() == 0:
        arrange(case, tmp_path)
        with contextlib.suppress(AssertionError):  # that Spark was used: nothing was refused
            penstock(case.command, tmp_path, monkeypatch, capfd)
    arrange(case, folder)
    with somebody_else():
        said = penstock(case.command, folder, monkeypatch, capfd)
    compare(case, said, folder)
    assert not list(folder.rglob("x.parquet"))
