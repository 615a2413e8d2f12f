"""A look at the workers before a run: can they import penstock, and do they see the folders that the driver sees?

One small job, only where tasks run on other machines. What it sends must work where penstock is missing: a function
that is pickled by value (it is local to another) and needs nothing but Python.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkContext

import penstock
from penstock.errors import ConfigError, PenstockError
from penstock.runtime.spark.master import Tell, await_executors

MARK = ".penstock-probe-"
SHOWN = 5  # hosts in a message
TASK, IMPORT, FOLDER, FILE, PYTHON = "task", "import", "folder", "file", "python"
SHARED = "all machines must see it under the same path: use a shared file system, or --master local[*]"
HINTS = {
    IMPORT: "install penstock for that Python, or name another by PYSPARK_PYTHON or spark.pyspark.python; "
    "with spark.archives an environment travels with the app",
    PYTHON: "set PYSPARK_PYTHON or spark.pyspark.python to one that all workers have, of the driver's version",
    FOLDER: SHARED,
    FILE: SHARED,
    TASK: "see the log of that worker",
}


@dataclass(frozen=True)
class Trouble:
    """What is wrong on a host."""

    kind: str
    host: str
    fact: str


def probe(
    context: SparkContext,
    folders: tuple[tuple[str, str], ...],
    files: tuple[tuple[str, int], ...],
    tell: Tell = lambda phase: None,
) -> None:
    """Wait for workers and look at them; a ConfigError names the hosts where tasks could not run.

    `folders` are those that tasks write to, each with what it is; `files` those that they read, each with its size."""
    await_executors(context, tell)
    tell("looking at the workers")
    mark = MARK + uuid.uuid4().hex[:12]
    marked = [Path(folder) / mark for _, folder in folders]
    try:
        for path in marked:
            path.write_bytes(b"")
        found = _looked(context, _look(penstock.__version__, mark, folders, files))
    finally:
        for path in marked:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    if found:
        raise trouble(found)


def trouble(found: Sequence[Trouble]) -> ConfigError:
    """The error that tells of all hosts, with the hint for what comes first: a worker's Python, then its files."""
    order = [PYTHON, IMPORT, FOLDER, FILE, TASK]
    first = min((one.kind for one in found), key=order.index)
    facts = list(dict.fromkeys(f"{one.host}: {one.fact}" for one in found if one.kind == first))
    more = [f"and {len(facts) - SHOWN} more"] if len(facts) > SHOWN else []
    return ConfigError("\n  ".join(["workers cannot run this app", *facts[:SHOWN], *more]), HINTS[first])


def _looked(context: SparkContext, look: Callable[[Iterable[int]], Iterable[Any]]) -> list[Trouble]:
    """One task for each core: the scheduler spreads them over all executors."""
    count = context.defaultParallelism
    try:
        told = context.parallelize(range(count), count).mapPartitions(look).collect()
    except Exception as error:  # of py4j or PySpark, which have no common root
        found = in_report(str(error), context.pythonExec)
        return [found or Trouble(TASK, "a worker", str(error).strip().partition("\n")[0])]
    return [Trouble(kind, host, fact) for host, kind, fact in told]


def _look(
    version: str, mark: str, folders: tuple[tuple[str, str], ...], files: tuple[tuple[str, int], ...]
) -> Callable[[Iterable[int]], Iterable[tuple[str, str, str]]]:
    """What a task does: it yields (host, kind, fact) for each trouble."""

    def look(numbers: Iterable[int]) -> Iterator[tuple[str, str, str]]:
        import os
        import socket
        import sys

        host, python = socket.gethostname(), sys.executable
        try:
            import penstock
            from penstock.runtime.preload import preload

            preload()  # the tasks of this worker find all that loaded
            if penstock.__version__ != version:
                fact = f"{python} has penstock {penstock.__version__}, the driver {version}"
                yield host, "import", fact
        except Exception as error:
            yield host, "import", f"{python} cannot import penstock: {error}"
        for name, folder in folders:
            own = os.path.join(folder, f"{mark}-{host}-{os.getpid()}")
            try:
                if not os.path.exists(os.path.join(folder, mark)):
                    yield host, "folder", f"the {name} {folder} is not there, or not the driver's"
                    continue
                with open(own, "wb"):
                    pass
                os.unlink(own)
            except OSError as error:
                yield host, "folder", f"the {name} {folder} cannot be written: {error.strerror}"
        for path, size in files:
            try:
                with open(path, "rb") as file:
                    found = os.fstat(file.fileno()).st_size
                if found < size:
                    yield host, "file", f"the input {path} has {found} bytes, the driver's {size}"
            except OSError as error:
                yield host, "file", f"the input {path} cannot be read: {error.strerror}"

    return look


def in_report(text: str, python: str) -> Trouble | None:
    """What Spark's report of a failed task says about the Python of a worker, if that is the reason."""
    place = re.search(r"\((\S+) executor \S+?\)", text)
    host = place[1] if place else "this machine"
    if match := re.search(r"Cannot run program \"([^\"]+)\".*?(?:error=\d+, ([^\n]+))?\n", text):
        return Trouble(PYTHON, host, f"{match[1]} cannot be started: {match[2] or 'no such program'}")
    if match := re.search(r"different version[:\s]+(\d+\.\d+)\D+?(\d+\.\d+)", text):
        return Trouble(PYTHON, host, f"{python} is Python {match[1]}, the driver's {match[2]}")
    if match := re.search(r"No module named '?((?:penstock|pyarrow|numba|numpy|pyspark|xxhash)[\w.]*)'?", text):
        return Trouble(IMPORT, host, f"{python} has no module '{match[1]}'")
    return None


def told_by_spark(text: str, python: str) -> PenstockError | None:
    """The same as an error, for reports of runs that are under way."""
    found = in_report(text, python)
    return None if found is None else trouble([found])
