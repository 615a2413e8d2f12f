"""The processes of a run: find them, kill one of a role at a moment, leave none behind.

Whoever carries the mark of `runs.start` is of that run, also after its parent died and init adopted it. Only such
processes are ever killed, by process id, looked up again each time.
"""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from penstock.testing.faults.runs import (
    MARK,
    POLL_SECONDS,
    Ended,
    Fault,
    Launch,
    Running,
    await_batches,
    await_that,
    start,
    wait,
)

DRIVER, JVM, WORKER = "driver", "jvm", "worker"
LAUNCHER = "org.apache.spark.launcher.Main"  # of Spark's scripts: it only prints the command of the JVM
PYTHON_MODULES = (
    "penstock.runtime.spark.daemon",
    "penstock.runtime.engine.zygote",
    "pyspark.daemon",
    "python_streaming_source_runner",
    "pyspark.worker",
)


@dataclass(frozen=True)
class Strike:
    """Kill a process of this role `delay` seconds after the run has committed `batches` batches of its own."""

    role: str
    batches: int = 0
    delay: float = 0.0


@dataclass(frozen=True)
class Process:
    """One process of a run."""

    pid: int
    role: str
    command: str


def alive(running: Running) -> list[Process]:
    """The run's processes that live now, orphans included, by process id."""
    mark = f"{MARK}={running.mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        command = _marked_command(folder, mark)
        if command is not None:
            pid = int(folder.name)
            found.append(Process(pid, DRIVER if pid == running.process.pid else _role(command), command))
    return sorted(found, key=lambda process: process.pid)


def _marked_command(folder: Path, mark: bytes) -> str | None:
    """The command line of a process that carries the mark and is not a zombie; else None."""
    try:
        if mark not in (folder / "environ").read_bytes().split(b"\0"):
            return None
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return None
    return command.replace(b"\0", b" ").decode(errors="replace").strip() or None


def _role(command: str) -> str:
    if command.split(" ")[0].endswith("java") and LAUNCHER not in command:
        return JVM
    return WORKER if any(module in command for module in PYTHON_MODULES) else "other"


def kill(running: Running, role: str, choose: random.Random) -> Process | None:
    """kill -9 one process of this role; None if there is none (not yet, or no more)."""
    candidates = [process for process in alive(running) if process.role == role]
    if not candidates:
        return None
    victim = choose.choice(candidates)
    try:
        os.kill(victim.pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return victim


def strike(running: Running, blow: Strike, choose: random.Random) -> Process | None:
    """Wait for the moment of a strike and kill; None if the run ended before."""
    if not await_batches(running, blow.batches):
        return None
    deadline = time.monotonic() + blow.delay
    if not await_that(running, lambda: time.monotonic() >= deadline):
        return None
    victim: list[Process | None] = [None]

    def killed() -> bool:
        victim[0] = kill(running, blow.role, choose)
        return victim[0] is not None

    await_that(running, killed)
    return victim[0]


def run_to_end(launch: Launch, logs: Path, fault: Fault | None = None) -> Ended:
    """A run that nobody kills; with a fault, one that disturbs itself."""
    running = start(launch, logs, fault)
    try:
        return wait(running)
    finally:
        clean_up(running)


def await_orphans(running: Running, patience: float = 60.0) -> list[Process]:
    """Wait for the processes of an ended run to end by themselves; returns those that did not."""
    deadline = time.monotonic() + patience
    while (left := alive(running)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return left


def clean_up(running: Running) -> None:
    """Kill whatever of this run still lives."""
    while left := alive(running):
        for process in left:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        running.process.poll()  # reap the driver
        time.sleep(POLL_SECONDS)
    running.process.wait()
