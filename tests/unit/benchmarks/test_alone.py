"""What a command uses, measured below a process that is next to nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.measure.alone import Used, measured

MIB = 1 << 20


def used_by(code: str, folder: Path) -> Used:
    return measured([sys.executable, "-S", "-c", code], folder, folder / "log")


def test_memory_is_that_of_the_command(tmp_path: Path) -> None:
    ballast = np.ones(200 * MIB, np.uint8)  # what this process has says nothing of its children
    small = used_by("pass", tmp_path)
    large = used_by("x = b'1' * (80 << 20)", tmp_path)
    assert len(ballast) > 200 * MIB - 1
    assert small.memory < 40 * MIB
    assert 80 * MIB <= large.memory < small.memory + 90 * MIB


def test_what_a_command_leaves_behind_is_counted(tmp_path: Path) -> None:
    code = "import os\nif os.fork() == 0:\n  x = b'1' * (80 << 20)\n  sum(range(3_000_000))"
    used = used_by(code, tmp_path)
    assert used.memory >= 80 * MIB
    assert used.processor >= 0.02


def test_failures_have_their_code_and_words(tmp_path: Path) -> None:
    code = "import sys; print('lost'); sys.exit('that is wrong')"
    used = used_by(code, tmp_path)
    assert used.code == 1
    assert (tmp_path / "log").read_text() == "that is wrong\n"
