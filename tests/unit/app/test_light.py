"""Short commands load little: a new import in the wrong place shows here, not in a stopwatch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

APP = """CREATE STREAM s FROM 'generate:uniform' WITH (rows = 100);
CREATE QUERY q AS SELECT count(*) AS n FROM s [WINDOW 1 HOUR];
"""
CALL = """import sys
from penstock.app.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """Packages that a command loads."""
    (folder / "app.sql").write_text(APP)
    done = subprocess.run(
        [sys.executable, "-c", CALL, *arguments], capture_output=True, text=True, cwd=folder, check=True
    )
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("--version",)])
def test_help_loads_nothing_heavy(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert not loaded(tmp_path, *arguments) & {"pyspark", "numba", "pyarrow", "numpy", "sqlglot", "pandas"}


def test_check_loads_no_engine(tmp_path: Path) -> None:
    assert not loaded(tmp_path, "check", "app.sql") & {"pyspark", "py4j", "numba", "pandas", "pydantic", "matplotlib"}


def test_values_that_are_not_plain_are_judged_by_typer(tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text(APP)
    command = [sys.executable, "-m", "penstock", "run", "app.sql", "--batch-rows", "many"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert said.returncode == 2
    assert "--batch-rows" in said.stderr
    assert "Traceback" not in said.stderr
