"""A run of the command line as a process of its own: start it, with a fault if asked, wait for it, see how it ended.

    start ──► Running ──► wait ──► Ended

A run is started with a mark in its environment, which the JVM, its Python daemon, workers and source runner inherit:
`processes` finds them by it. What a run leaves is read by `outputs`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MARK = "PENSTOCK_TEST_RUN"
OURS = ("PENSTOCK_FAULT", "PENSTOCK_CLOCK_SKEW")  # not inherited from whoever starts a run
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)  # exit codes of a run that a signal stopped before its end
POLL_SECONDS = 0.02
PATIENCE_SECONDS = 600.0  # a guard against hanging, not a claim about speed


@dataclass(frozen=True)
class Launch:
    """What to run: an app's file, its checkpoint and output, and further options of `penstock run`.

    `environment` is added to that of the caller; no file may grow beyond `file_limit` bytes.
    """

    app: Path
    checkpoint: Path
    output: Path
    batch_rows: int
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    file_limit: int | None = None

    def command(self) -> list[str]:
        places = ["--checkpoint", str(self.checkpoint), "--output", str(self.output)]
        fixed = [*places, "--batch-rows", str(self.batch_rows), "--json", "--quiet"]
        return [sys.executable, "-m", "penstock.app.cli", "run", str(self.app), *fixed, *self.options]

    def without_spark(self) -> Launch:
        """The same run with workers of penstock's own."""
        return replace(self, options=(*self.options, "--master", "process"))

    @property
    def has_spark(self) -> bool:
        return "process" not in self.options

    def with_environment(self, **variables: str) -> Launch:
        return replace(self, environment=(*self.environment, *variables.items()))


@dataclass(frozen=True)
class Fault:
    """Be disturbed at the `visit`-th visit of a point of `penstock.faults`, and `onwards` at all later ones.

    `once`: only the first process that comes there, and only once. `action` is `kill`, `raise=ERRNO` or
    `stall=SECONDS`.
    """

    point: str
    visit: int = 1
    once: bool = True
    action: str = "kill"
    onwards: bool = False

    def text(self) -> str:
        return f"{self.point}:{self.visit}{'+' if self.onwards else ''}:{self.action}"


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


def start(launch: Launch, logs: Path, fault: Fault | None = None) -> Running:
    """Start a run in its own process group; its output goes to files in `logs`."""
    logs.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex
    stdout, stderr, fired = (logs / f"{mark[:8]}.{kind}" for kind in ("out", "err", "fired"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environment |= dict(launch.environment) | {MARK: mark}
    if fault is not None:
        environment["PENSTOCK_FAULT"] = fault.text()
        if fault.once:
            environment["PENSTOCK_FAULT_ONCE"] = str(fired)
    before = committed(launch.checkpoint)
    with open(stdout, "wb") as out, open(stderr, "wb") as err:
        process = subprocess.Popen(
            launch.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True,
            preexec_fn=None if launch.file_limit is None else _limited(launch.file_limit),
        )  # fmt: skip
    return Running(launch, process, mark, stdout, stderr, fired, before)


def _limited(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def committed(checkpoint: Path) -> int:
    """Number of batches that have a manifest, those that were collected included."""
    numbers = [int(path.stem) for path in (checkpoint / "manifests").glob("[0-9]*.json")]
    return max(numbers, default=-1) + 1


def await_batches(running: Running, batches: int) -> bool:
    """Wait until the run has committed `batches` batches of its own; False if it ended first."""
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
    summary = json.loads(text) if code in (0, *STOPPED) and text else None
    return Ended(code, summary, running.stderr.read_text(errors="replace"), running.fired.exists())
