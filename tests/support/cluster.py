"""A standalone cluster of Spark's on loopback: a master and workers, processes of the test that started them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark

import penstock
from penstock.runtime.spark.java import ensure_java

BIN = Path(pyspark.__file__).parent / "bin"
SOURCES = str(Path(penstock.__file__).parents[1])
PATIENCE = 120.0


def environment() -> dict[str, str]:
    """That of drivers and workers: this Python, this penstock, loopback."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))},
        "JAVA_HOME": ensure_java(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYTHONPATH": SOURCES,
    }


class Cluster:
    """The master, from the start; `url` is its address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        log, _ = self._start("master", ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"])
        self.url = self._awaited(log, r"Starting Spark master at (spark://\S+)")

    def add_worker(self, cores: int, before: tuple[str, ...] = ()) -> int:
        """One more worker, registered; `before` is a command that starts it. Returns its process id."""
        options = f"--host 127.0.0.1 --cores {cores} --memory 1g --webui-port 0 {self.url}".split()
        log, pid = self._start("worker", options, before)
        self._awaited(log, r"(Successfully registered) with master")
        return pid

    def end(self, pid: int) -> None:
        """End a process of the cluster, and what it has started: it leads a group of its own."""
        child = self._children.pop(pid)
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(pid, number)
                child.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def close(self) -> None:
        for pid in reversed(list(self._children)):
            self.end(pid)

    def _start(self, kind: str, options: list[str], before: tuple[str, ...] = ()) -> tuple[Path, int]:
        log = self._folder / f"{kind}{len(self._children)}.log"
        name = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
        with log.open("wb") as out:
            child = subprocess.Popen(
                [*before, str(BIN / "spark-class"), name, *options],
                env=environment() | {"SPARK_WORKER_DIR": str(self._folder / "work")},
                stdout=out, stderr=out, cwd=self._folder, start_new_session=True,
            )  # fmt: skip
        self._children[child.pid] = child
        return log, child.pid

    def _awaited(self, log: Path, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            match = re.search(pattern, log.read_text(errors="replace"))
            if match:
                return match[1]
            time.sleep(0.1)
        raise AssertionError(log.read_text(errors="replace"))


def driver(*command: str, folder: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """A driver in a process of its own; `command` follows the Python of the tests."""
    return subprocess.run(
        [sys.executable, *command], env=environment() | extra, cwd=folder, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
