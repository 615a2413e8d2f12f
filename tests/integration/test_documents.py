"""The blocks of the documents for users run as they stand, one after the other, in a folder of their own.

Blocks marked `by hand` take long, or set up an environment. Those of a page that needs Spark are slow.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|python)( by hand)?\n((?s:.*?))^```", re.MULTILINE)
QUICK = ("docs/query.md",)
SLOW = ("README.md", "docs/overload.md", "docs/running.md", "docs/python.md")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_what_a_page_says_works(name: str, tmp_path: Path) -> None:
    place = folder_of(tmp_path)
    page = (ROOT / name).read_text(encoding="utf-8")
    ran = 0
    for language, by_hand, text in BLOCK.findall(page):
        if not by_hand:
            run(language, text, place, name)
            ran += 1
    assert ran > 2, name


@pytest.mark.parametrize("name", sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")))
def test_every_page_says_how_its_blocks_are_tested(name: str) -> None:
    """Pages whose blocks are run elsewhere, or say themselves that they are for hands."""
    elsewhere = (*QUICK, *SLOW, "docs/testing.md", "docs/semantics.md")
    blocks = re.findall(r"^```(\S+)(.*)$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    unmarked = [kind for kind, mark in blocks if kind in ("sh", "python") and "by hand" not in mark]
    assert not unmarked or name in elsewhere, f"{name} has {len(unmarked)} blocks that no test runs"


def folder_of(tmp_path: Path) -> Path:
    """A folder that looks like a checkout: examples, and the command on the path."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "demo-out").mkdir()
    commands = tmp_path / ".bin"
    commands.mkdir()
    for command, arguments in (("penstock", "-m penstock"), ("python", "")):
        (commands / command).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (commands / command).chmod(0o755)
    return tmp_path


def run(language: str, text: str, place: Path, name: str) -> None:
    command = ["bash", "-euo", "pipefail", "-c", text] if language == "sh" else [sys.executable, "-c", text]
    environment = {**os.environ, "PATH": f"{place / '.bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name}:\n{text}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert "Traceback" not in done.stderr, f"{name}:\n{text}\n{done.stderr[-4000:]}"
