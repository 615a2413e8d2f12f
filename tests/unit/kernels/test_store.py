"""Kernels of an installation that cannot be written, for a user without a home: compiled, and kept where one can.

Root may write everywhere: files stand where numba would make its folders.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "src" / "penstock"
CODE = """
from penstock.kernels.tables import columns
columns.put_1.load()
print(columns.put_1.nopython_signatures[0].return_type)
"""


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """The package, where no kernels can be kept, without those that were compiled before."""
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "penstock", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path for path in site.rglob("*") if path.is_dir()]:
        (folder / "__pycache__").write_text("taken")
    return site


def run(installation: Path, temporary: Path, code: str = CODE) -> str:
    environment = {"PYTHONPATH": str(installation), "HOME": "/dev/null", "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def temporary_folder(tmp_path: Path) -> Path:
    path = tmp_path / "tmp"
    path.mkdir()
    return path


def test_kernels_are_kept_in_the_folder_for_temporary_files(installation: Path, tmp_path: Path) -> None:
    temporary = temporary_folder(tmp_path)
    assert run(installation, temporary) == "none\n"
    mine = temporary / f"penstock-kernels-{os.getuid()}"
    assert mine.stat().st_mode & 0o777 == 0o700
    compiled = {path: path.stat().st_mtime_ns for path in mine.rglob("*.nb?")}
    assert compiled
    assert run(installation, temporary) == "none\n"
    assert {path: path.stat().st_mtime_ns for path in mine.rglob("*.nb?")} == compiled


def test_a_folder_that_others_can_write_is_not_trusted(installation: Path, tmp_path: Path) -> None:
    mine = temporary_folder(tmp_path) / f"penstock-kernels-{os.getuid()}"
    mine.mkdir()
    mine.chmod(0o777)
    assert run(installation, mine.parent) == "none\n"
    assert list(mine.iterdir()) == []


def test_without_any_place_kernels_are_compiled_in_memory(installation: Path, tmp_path: Path) -> None:
    """The name is taken: nothing can be kept there."""
    temporary = temporary_folder(tmp_path)
    (temporary / f"penstock-kernels-{os.getuid()}").write_text("taken")
    assert run(installation, temporary) == "none\n"


def test_functions_of_the_user_are_kept_elsewhere(installation: Path, tmp_path: Path) -> None:
    code = CODE + "\nimport numba; assert not numba.config.CACHE_DIR"
    assert run(installation, temporary_folder(tmp_path), code) == "none\n"
