"""What is done once for an installation, so that every later start is short: `penstock prepare`.

    bytecode of the package ──► kernels, compiled ──► an archive of the classes that Spark loads in a small run

Nothing of it is needed: what is missing is made when it is first used, or done without. The archive is recorded by a
process of its own (`python -m penstock.app.prepare FILE`), whose JVM writes it at its end.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import penstock

ENOUGH = 600  # seconds after which a JVM that does not end is given up
ROWS = 2000
QUERIES = (
    "SELECT src, count(*) AS n, sum(bytes) AS bytes FROM flows [RANGE '1 second'] GROUP BY src",
    "SELECT proto, avg(bytes) AS mean FROM flows [RANGE '2 seconds' SLIDE '1 second'] GROUP BY proto",
)


def prepare(tell: Callable[[str], None]) -> list[str]:
    """Do it all; `tell` hears what is being done. Returns what was made, and what could not be."""
    tell("compiling Python and kernels")
    compileall.compile_dir(str(Path(penstock.__file__).parent), quiet=2)
    subprocess.run([sys.executable, "-m", "penstock.kernels.ahead"], check=False, capture_output=True)
    tell("recording the classes of Spark")
    return ["kernels are compiled", _record()]


def _record() -> str:
    """Make the archive of classes, unless it is there."""
    from penstock.runtime.spark import archive
    from penstock.runtime.spark.java import ensure_java

    path = archive.place(ensure_java())
    if path is None:
        return "no archive of Spark's classes: its jars cannot be looked at"
    if path.is_file():
        return f"{path}: the archive of Spark's classes is there"
    aside = path.with_suffix(f".jsa{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Standard output is the JVM's as well: it ends when the JVM has ended, after everything is written.
        command = [sys.executable, "-m", "penstock.app.prepare", str(aside)]
        subprocess.run(command, capture_output=True, timeout=ENOUGH, check=True)
        made = archive.keep(aside, path)
    except (OSError, subprocess.SubprocessError) as error:
        return f"no archive of Spark's classes, runs start without it: {error}"
    finally:
        aside.unlink(missing_ok=True)
    return f"{path}: an archive of Spark's classes" if made else "this Java makes no archive of Spark's classes"


def train(aside: Path) -> None:
    """A small run of everything that runs have in common, with a JVM that records what it loads."""
    from penstock.app.api import App
    from penstock.runtime.spark import archive
    from penstock.sources.generate.source import open_generate
    from penstock.sources.parquet.write import write_parquet

    archive.record(aside)
    with tempfile.TemporaryDirectory(prefix="penstock-prepare-") as folder:
        trace = Path(folder, "flows.parquet")
        write_parquet(open_generate("flows", {"rows": str(ROWS)}), trace)
        app = App()
        app.stream("flows", f"parquet:{trace}", time="ts", delay="1 second")
        for number, select in enumerate(QUERIES):
            app.query(f"q{number}", select)
        running = app.start(f"{folder}/checkpoint", output=f"{folder}/out", batch_rows=ROWS // 2)
        running.await_end()
        running.results("q0").collect()
        app.close()


if __name__ == "__main__":
    train(Path(sys.argv[1]))
