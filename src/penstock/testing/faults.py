"""Kill a run and see what is left: `penstock run` as a process of its own, with faults, signals and a clean end.

    start ──► strike (kill -9 driver, JVM or a Python worker) or a named point of `penstock.faults` ──► wait ──► Ended
    collect ──► Output: rows of every query, files, leftovers

A run is started with a mark in its environment, which the JVM, its Python daemon, workers and source runner
inherit: whoever carries the mark is of this run, also after its parent died and init adopted it. Only such
processes are ever killed, by process id, looked up anew each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MARK = "PENSTOCK_TEST_RUN"
DRIVER, JVM, WORKER = "driver", "jvm", "worker"
PYTHON_MODULES = ("penstock.runtime.daemon", "pyspark.daemon", "python_streaming_source_runner", "pyspark.worker")
POLL_SECONDS = 0.02
PATIENCE_SECONDS = 600.0  # a guard against hanging, not a claim about speed


@dataclass(frozen=True)
class Launch:
    """What to run: an app's file, its checkpoint and output, and further options of `penstock run`."""

    app: Path
    checkpoint: Path
    output: Path
    batch_rows: int
    options: tuple[str, ...] = ()

    def command(self) -> list[str]:
        places = ["--checkpoint", str(self.checkpoint), "--output", str(self.output)]
        fixed = [*places, "--batch-rows", str(self.batch_rows), "--json", "--quiet"]
        return [sys.executable, "-m", "penstock.app.cli", "run", str(self.app), *fixed, *self.options]


@dataclass(frozen=True)
class Fault:
    """Die at the `visit`-th visit of a point; `once`: only the first process that comes there."""

    point: str
    visit: int = 1
    once: bool = True


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


@dataclass(frozen=True)
class Running:
    """A started run. `fired` is created by the fault when it happens."""

    launch: Launch
    process: subprocess.Popen[bytes]
    mark: str
    stdout: Path
    stderr: Path
    fired: Path
    batches_before: int


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit code (negative: the signal), summary if it printed one, messages."""

    code: int
    summary: dict[str, Any] | None
    messages: str
    fired: bool


@dataclass(frozen=True)
class Output:
    """What a reader sees: rows per query, result files, and files that no reader should meet."""

    rows: dict[str, pa.Table]
    files: tuple[str, ...]
    leftovers: tuple[str, ...]


def start(launch: Launch, logs: Path, fault: Fault | None = None) -> Running:
    """Start a run in its own process group; its output goes to files in `logs`."""
    logs.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex
    stdout, stderr, fired = (logs / f"{mark[:8]}.{kind}" for kind in ("out", "err", "fired"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_FAULT")}
    environment[MARK] = mark
    if fault is not None:
        environment["PENSTOCK_FAULT"] = f"{fault.point}:{fault.visit}"
        if fault.once:
            environment["PENSTOCK_FAULT_ONCE"] = str(fired)
    before = committed(launch.checkpoint)
    with open(stdout, "wb") as out, open(stderr, "wb") as err:
        process = subprocess.Popen(
            launch.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
        )
    return Running(launch, process, mark, stdout, stderr, fired, before)


def committed(checkpoint: Path) -> int:
    """Number of batches that have a manifest, those that were collected included."""
    numbers = [int(path.stem) for path in (checkpoint / "manifests").glob("[0-9]*.json")]
    return max(numbers, default=-1) + 1


def processes(running: Running) -> list[Process]:
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
    if command.split(" ")[0].endswith("java"):
        return JVM
    return WORKER if any(module in command for module in PYTHON_MODULES) else "other"


def kill(running: Running, role: str, choose: random.Random) -> Process | None:
    """kill -9 one process of this role; None if there is none (not yet, or no more)."""
    candidates = [process for process in processes(running) if process.role == role]
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


def await_batches(running: Running, batches: int) -> bool:
    """Wait until the run has committed so many batches of its own; False if it ended first."""
    return await_that(running, lambda: committed(running.launch.checkpoint) >= running.batches_before + batches)


def await_that(running: Running, holds: Callable[[], bool]) -> bool:
    """Wait until something holds while the run goes on; False if the run ended first."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if running.process.poll() is not None:
            return False
        if time.monotonic() > deadline:
            raise TimeoutError(f"the run hangs: {running.stderr.read_text(errors='replace')[-2000:]}")
        time.sleep(POLL_SECONDS)
    return True


def wait(running: Running) -> Ended:
    """Wait until the driver has ended, by itself or killed."""
    await_that(running, lambda: running.process.poll() is not None)
    code = running.process.wait()
    text = running.stdout.read_text(errors="replace").strip()
    summary = json.loads(text) if code == 0 and text else None
    return Ended(code, summary, running.stderr.read_text(errors="replace"), running.fired.exists())


def run_to_end(launch: Launch, logs: Path) -> Ended:
    """An undisturbed run."""
    running = start(launch, logs)
    try:
        return wait(running)
    finally:
        clean_up(running)


def await_orphans(running: Running, patience: float = 60.0) -> list[Process]:
    """Wait for the processes of an ended run to end by themselves; returns those that did not."""
    deadline = time.monotonic() + patience
    while (alive := processes(running)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return alive


def clean_up(running: Running) -> None:
    """Kill whatever of this run still lives."""
    while alive := processes(running):
        for process in alive:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        running.process.poll()  # reap the driver
        time.sleep(POLL_SECONDS)
    running.process.wait()


def collect(output: Path) -> Output:
    """Read every query's folder the way users do: a plain glob."""
    rows: dict[str, pa.Table] = {}
    files, leftovers = [], []
    for folder in sorted(path for path in output.iterdir() if path.is_dir()):
        tables = []
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(output))
            if path.parent == folder and path.suffix == ".parquet" and not path.name.startswith("."):
                files.append(name)
                tables.append(pq.read_table(path))
            elif path.is_file() and path.name != "_penstock.json":
                leftovers.append(name)
        rows[folder.name] = pa.concat_tables(tables) if tables else pa.table({})
    return Output(rows, tuple(files), tuple(leftovers))


def digest(rows: pa.Table) -> str:
    """The same for the same multiset of rows, in whatever order and files they come."""
    columns = [rows.column(name).to_pylist() for name in sorted(rows.column_names)]
    lines = sorted(map(repr, zip(*columns, strict=True)))
    return hashlib.blake2b("\n".join([*sorted(map(str, rows.schema)), *lines]).encode(), digest_size=16).hexdigest()
