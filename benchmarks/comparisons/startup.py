"""The benchmark `startup`: how long commands take from call to prompt, beside what they are made of.

    import of pyarrow and numba ── --help, check, query on ten records, a few mistakes
    PySpark's session and first job, same JVM options ── run of ten records on Spark
    DuckDB's whole process ── query on a million records

All take turns, several times each; figures are medians of whole processes, wall and processor time. Whatever a command
leaves behind is waited for before the next one, and its processor time counts.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.comparisons.peers import named
from benchmarks.measure import machine
from benchmarks.measure.cpu import adopt, children, own_seconds, wait_for_new

Progress = Callable[[str], None]

TIMES, QUICK_TIMES = 5, 1
TEN, MANY, QUICK_MANY = 10, 1_000_000, 50_000
IMPORT, SPARK, DUCKDB = "imports", "pyspark", "duckdb"
IMPORTS = "import pyarrow, numba"
QUERY = "SELECT src, count(*) AS n FROM '{file}' GROUP BY src"
APP = """CREATE STREAM flows FROM 'parquet:{file}' WATERMARK ts DELAY '2 seconds';
CREATE QUERY talkers AS SELECT src, count(*) AS n FROM flows [RANGE '1 minute'] GROUP BY src;
"""
# The same question, by plain PySpark with the JVM options of a session of penstock's own.
PLAIN = """
import os, sys
from penstock.runtime.spark import archive
from penstock.runtime.spark.java import ensure_java
options = " ".join(("-XX:TieredStopAtLevel=1", *archive.options(ensure_java())))
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
spark.read.parquet(sys.argv[1]).groupBy("src").count().collect()
spark.stop()
"""
DUCK = "import duckdb, sys; duckdb.sql(sys.argv[1]).fetchall()"
MISSING = "No such command"


@dataclass(frozen=True)
class Command:
    """Arguments of Python; `beside` is the command that its time is compared with, `most` the ratio that is aimed at,
    `code` how it ends."""

    name: str
    work: str
    arguments: Sequence[str]
    beside: str = ""
    most: float | None = None
    code: int = 0


@dataclass
class Measured:
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    note: str = ""


def run(
    *,
    work: Path,
    rows: int = MANY,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the figures as JSON data; `engines` are names of commands: those they are compared with run as well."""
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_MANY) if quick else rows
    every = commands(*arranged(work, rows), rows)
    asked = named(every, engines)
    needed = {command.beside for command in asked}
    chosen = [command for command in every if command in asked or command.name in needed]
    adopt()
    measured = {command.name: Measured() for command in chosen}
    times = QUICK_TIMES if quick else TIMES
    for number in range(times + 1):  # the first time warms up caches of files and is not counted
        for command in chosen:
            tell(f"{command.name}: {'once to warm up' if number == 0 else f'{number} of {times}'}")
            if not measured[command.name].note:
                measure(command, work, measured[command.name], counted=number > 0)
    results = [line(command, measured) for command in chosen]
    return {"name": "startup", "machine": machine.describe(), "rows": rows, "times": times, "results": results}


def arranged(work: Path, rows: int) -> tuple[Path, Path, Path]:
    """A file of ten records, one of many, and an app on the first."""
    from penstock.sources.generate.source import open_generate
    from penstock.sources.parquet.write import write_parquet

    work.mkdir(parents=True, exist_ok=True)
    ten, many, app = work / "ten.parquet", work / f"startup-{rows}.parquet", work / "startup.sql"
    for path, count in ((ten, TEN), (many, rows)):
        if not path.exists():
            write_parquet(open_generate("flows", {"rows": str(count)}), path)
    app.write_text(APP.format(file=ten))
    return ten, many, app


def commands(ten: Path, many: Path, app: Path, rows: int) -> tuple[Command, ...]:
    """All that is measured, each after what it is compared with."""
    penstock = ("-m", "penstock")
    on_ten, on_many = QUERY.format(file=ten), QUERY.format(file=many)
    small, large, out = f"{TEN} records", f"{rows:,} records", str(ten.parent / "startup-out")
    start = (*penstock, "run", str(app), "--quiet", "--overwrite", "--output", out)
    return (
        Command(IMPORT, "no work", ("-c", IMPORTS)),
        Command("--help", "no work", (*penstock, "--help"), IMPORT, 0.5),
        Command("--version", "no work", (*penstock, "--version"), IMPORT, 0.5),
        Command("check", "no work", (*penstock, "check", str(app)), IMPORT, 1.0),
        Command("query", small, (*penstock, "query", on_ten), IMPORT, 3.0),
        Command("run --master process", small, (*start, "--master", "process"), IMPORT),
        Command(SPARK, small, ("-c", PLAIN, str(ten))),
        Command("run", small, start, SPARK, 1.2),
        Command(DUCKDB, large, ("-c", DUCK, on_many)),
        Command("query, large", large, (*penstock, "query", on_many), DUCKDB, 2.0),
        Command("unknown option", "a mistake", (*start, "--no-such-option"), IMPORT, code=2),
        Command("no such app", "a mistake", (*penstock, "run", f"{app}.not"), IMPORT, code=2),
        Command("no such file", "a mistake", (*penstock, "query", QUERY.format(file="no.parquet")), IMPORT, code=2),
        Command("no such column", "a mistake", (*penstock, "query", on_ten.replace("src", "sorce")), IMPORT, code=2),
        Command("output is a file", "a mistake", (*start[:-1], str(app)), IMPORT, code=2),
        Command("no master", "a mistake", (*start, "--master", "sprak://host"), IMPORT, code=2),
    )


def measure(command: Command, work: Path, into: Measured, counted: bool) -> None:
    """Run it once; a note where it does not end as it should."""
    known, before, begin = children(), own_seconds(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command.arguments], cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wall = time.perf_counter() - begin
    wait_for_new(known)
    if done.returncode != command.code:
        said = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
        into.note = "missing: this penstock has no such command" if MISSING.lower() in done.stderr.lower() else said[0]
    elif counted:
        into.wall.append(wall)
        into.processor.append(own_seconds() - before)


def line(command: Command, measured: dict[str, Measured]) -> dict[str, Any]:
    """The figures of a command, with the ratio to what it is compared with."""
    found, other = measured[command.name], measured.get(command.beside)
    seconds = median(found.wall) if found.wall else None
    return {
        "engine": command.name,
        "version": "",
        "work": command.work,
        "seconds": seconds,
        "least_seconds": min(found.wall, default=None),
        "cpu_seconds": median(found.processor) if found.processor else None,
        "beside": command.beside,
        "ratio": _ratio(found.wall, other),
        "cpu_ratio": _ratio(found.processor, other, processor=True),
        "most": command.most,
        "ratio_to_penstock": None,
        "same_answer": None,
        "note": found.note,
    }


def _ratio(mine: list[float], other: Measured | None, processor: bool = False) -> float | None:
    theirs = [] if other is None else other.processor if processor else other.wall
    return round(median(mine) / median(theirs), 3) if mine and theirs else None
