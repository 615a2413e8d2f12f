"""Run a command below a process that is next to nothing, and say what the command and all that it started have used.

A process begins with the greatest memory of the one that it was forked from: Linux keeps that figure through an exec.
Below a benchmark, which has pyarrow loaded, no peak of less than 200 MB could be seen. So this module is a program of
its own that loads no package, and starts the command. It becomes the parent of what the command leaves behind, such as
a Java machine, and waits for that as well.

    benchmark ──► alone, 14 MB ──► the command ──► its workers, its Java machine

It prints what was used as JSON; stdout of the command goes nowhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measure.cpu import adopt

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Used:
    """Seconds until the command ended, processor seconds of it and all below it, bytes of the largest process."""

    code: int
    wall: float
    processor: float
    memory: int


def measured(command: Sequence[str], cwd: Path, log: Path) -> Used:
    """Run a command; what it says on stderr is in the log."""
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))
    launcher = [sys.executable, "-S", "-m", "benchmarks.measure.alone", *command]
    with log.open("wb") as errors:
        done = subprocess.run(
            launcher, cwd=cwd, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=errors, check=True
        )
    return Used(**json.loads(done.stdout))


def main(command: list[str]) -> None:
    adopt()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    begin, code, wall, processor, memory = time.perf_counter(), 0, 0.0, 0.0, 0
    started = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere, 1)])
    while True:
        try:
            ended, status, used = os.wait4(-1, 0)
        except ChildProcessError:  # none is left
            break
        if ended == started:
            code, wall = os.waitstatus_to_exitcode(status), time.perf_counter() - begin
        processor += used.ru_utime + used.ru_stime
        memory = max(memory, used.ru_maxrss * 1024)
    print(json.dumps(asdict(Used(code, wall, processor, memory))))


if __name__ == "__main__":
    main(sys.argv[1:])
