"""Run one engine in a process of its own, in the environment that has it.

Peers that are not dependencies of penstock live in `.venv-peers` and, for its older libraries, Flink in `.venv-flink`
(`make bench-peers`), beside `.venv` or in the current folder; where there is none, this interpreter is tried.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol, TypeVar

import benchmarks
from benchmarks.measure.job import Answer, Job, parse_answer
from penstock.errors import ConfigError

CHECKOUT = Path(benchmarks.__file__).parents[1]
PEERS = (".venv-peers", ".venv-flink")
NOT_INSTALLED = "not installed: make bench-peers"


class NamedEngine(Protocol):
    """An engine of a benchmark."""

    @property
    def name(self) -> str: ...


Engine = TypeVar("Engine", bound=NamedEngine)


def named(known: Sequence[Engine], names: list[str] | None) -> list[Engine]:
    """The engines with these names, in their order; all if none are given."""
    unknown = sorted(set(names or ()) - {engine.name for engine in known})
    if unknown:
        have = ", ".join(engine.name for engine in known)
        raise ConfigError(f"unknown engine '{unknown[0]}'", f"engines are {have}")
    return [engine for engine in known if names is None or engine.name in names]


@lru_cache(maxsize=32)
def interpreter(package: str) -> str | None:
    """The Python that can import `package`, the peers' own environments first; None where none can."""
    places = [home / name for home in (Path.cwd(), CHECKOUT) for name in PEERS]
    found = [str(place / "bin" / "python") for place in places if (place / "bin" / "python").exists()]
    for python in [*found, sys.executable]:
        probe = [python, "-c", f"import {package}, numpy, pyarrow"]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return python
    return None


def run_engine(module: str, package: str, job: Job, timeout: float) -> Answer | str:
    """The engine's answer, or a sentence saying why there is none. The job's `work` is the folder to work in."""
    python = interpreter(package) if package else sys.executable
    if python is None:
        return NOT_INSTALLED
    folder = tempfile.mkdtemp(prefix=f"{module}-", dir=job.work)
    try:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(asdict(replace(job, work=folder, started_at=time.time()))))
        return _execute([python, "-m", f"benchmarks.engines.{module}", str(file)], timeout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _execute(command: list[str], timeout: float) -> Answer | str:
    path = os.pathsep.join(filter(None, [str(CHECKOUT), str(CHECKOUT / "src"), os.environ.get("PYTHONPATH", "")]))
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # so that a Java machine below it ends with it
    )
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"stopped after {timeout:.0f} s"
    finally:
        _end(process)
    answer = parse_answer(output)
    if answer is not None:
        return answer
    return f"failed: {reason(errors) or f'exit code {process.returncode}'}"


def reason(errors: str) -> str:
    """The end of the last traceback, or the last thing said: the fact starts its line, hints and details below it are
    indented, and what a Java machine logs while it goes down says nothing."""
    lines = [line.strip() for line in errors.splitlines() if line.strip() and not line[0].isspace()]
    facts = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit|Interrupt)\b", line)]
    return (facts or lines or [""])[-1][:300]


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
