"""Commands of penstock in this process, and all that they say against golden files; used by the tests beside it.

REWRITE=1 writes the golden files anew; review the diff.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock.app import cli

GOLDEN = Path(__file__).parent / "cli"


class NoSpark:
    """In the place of a session, for what must be refused before Spark is asked for anything."""

    _jvm = None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"Spark was used: {name}")


@dataclass(frozen=True)
class Case:
    """A command in a folder with an `app.sql`; `arrange` puts more there. `hide`: what differs from run to run."""

    name: str
    command: str
    app: str | bytes | None = None
    arrange: Callable[[Path], object] = lambda folder: None
    code: int = 2
    hide: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def penstock(command: str, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> Said:
    """Run a command as the program would, in `folder`."""
    patch.chdir(folder)
    patch.setenv("COLUMNS", "120")
    patch.setattr(sys, "argv", ["penstock", *shlex.split(command)])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    capture.readouterr()
    code: Any = 0
    try:
        cli.main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    out, err = capture.readouterr()
    return Said(code, out, re.sub(r"(?m)^batch \d+: .*\n", "", err))  # progress, which has seconds in it


def compare(case: Case, said: Said, folder: Path) -> None:
    """The golden file has the command, the exit code, and what went to stdout and stderr."""
    text = f"$ penstock {case.command}\nexit {said.code}\n"
    for name, part in (("stdout", said.out), ("stderr", said.err)):
        if part:
            text += f"-- {name}\n{part.rstrip()}\n"
    text = re.sub(r"(?m)^bytes: .*$", "bytes: SIZES", text.replace(str(folder), "TMP"))
    for pattern, word in case.hide.items():
        text = re.sub(pattern, word, text)
    expected = GOLDEN / f"{case.name}.txt"
    if os.environ.get("REWRITE"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text, encoding="utf-8")
    assert said.code == case.code, text
    assert text == expected.read_text(encoding="utf-8")
    check(said)


def check(said: Said) -> None:
    """What holds for every failure: one message, which says what to do, and nothing on stdout."""
    assert "Traceback" not in said.err + said.out
    if said.code:
        assert said.out == ""
        assert said.err.startswith("error: ")
        assert len(re.findall("(?m)^error: ", said.err)) == 1
        assert "\n  hint: " in said.err or " must be " in said.err or "| " in said.err


def quick_or_slow(cases: list[Case], *quick: str) -> list[Any]:
    """The cases for `parametrize`: those that start Spark jobs are slow, but for a few."""
    return [pytest.param(case, id=case.name, marks=[] if case.name in quick else [pytest.mark.slow]) for case in cases]


def held(checkpoint: Path, host: str = "", process: int = 0) -> None:
    """Put a lease into a checkpoint as a live run holds it: this process, or one on another host."""
    processes = [[process or os.getpid(), None]]
    record = {"host": host or socket.gethostname(), "processes": processes, "renewed": time.time(), "released": False}
    (checkpoint / "lease").mkdir(parents=True, exist_ok=True)
    (checkpoint / "lease" / "00000009.json").write_text(json.dumps(record))


def arrange(case: Case, folder: Path) -> None:
    if case.app is not None:
        (folder / "app.sql").write_bytes(case.app.encode() if isinstance(case.app, str) else case.app)
    case.arrange(folder)
