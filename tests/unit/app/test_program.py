"""`app.cli.program` ends the process without taking Python down: nothing that anybody waits for may be lost by that."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import atexit, sys, threading, time
from penstock.app import cli

def main():
{body}

cli.main = main
cli.program()
"""


def run(body: str) -> subprocess.CompletedProcess[str]:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return subprocess.run([sys.executable, "-c", PROGRAM.format(body=lines)], capture_output=True, text=True)


def test_what_is_printed_and_what_waits_for_the_end_is_done() -> None:
    done = run(
        "print('an answer')\n"
        "atexit.register(print, 'tidied')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('a thread')), daemon=False).start()"
    )
    assert done.stdout.split("\n") == ["an answer", "a thread", "tidied", ""]
    assert not done.stderr


def test_codes() -> None:
    bodies = ("pass", "sys.exit(3)", "sys.exit('why')", "sys.exit(None)")
    assert [run(body).returncode for body in bodies] == [0, 3, 1, 0]


def test_a_bug_shows_its_traceback() -> None:
    done = run("raise ValueError('a bug')")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("ValueError: a bug\n")


def test_a_reader_that_is_gone() -> None:
    command = [sys.executable, "-c", PROGRAM.format(body="    print('x' * 1_000_000); sys.exit(0)")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 1
    assert "Exception ignored" not in said
