"""The benchmark `details`: distinct counts beside a plain sum and beside the pairs that they are made of; and beside
DuckDB, Polars and Spark on the same file.

    sum(bytes) by src, a minute at a time ┐
    count(*) by src, dst                  ├─ penstock, DuckDB, Polars, Spark: whole processes, in turns
    count(DISTINCT dst) by src            │
    approx_count_distinct(dst), a million groups ┘

Figures are medians of whole processes: seconds, processor time of each with all that it starts, and the memory of the
largest process (`benchmarks.measure.alone`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.comparisons.peers import NOT_INSTALLED, interpreter
from benchmarks.measure import machine
from benchmarks.measure.alone import measured
from penstock.errors import ConfigError

Progress = Callable[[str], None]

TIMES, QUICK_TIMES = 3, 1
ROWS, QUICK_ROWS = 10_000_000, 50_000
GROUPS = 1_000_000
PENSTOCK, DUCKDB, POLARS, SPARK = "penstock", "duckdb", "polars", "spark"
MINUTE = "[RANGE '1 minute']"
# The number of a record's minute, as each engine has it soonest: DuckDB's and Spark's date_trunc ask a calendar about
# time zones, which took DuckDB more than the rest of the query.
DUCK_MINUTE, SPARK_MINUTE = "epoch_us(ts) // 60000000", "unix_micros(ts) div 60000000"
POLARS_MINUTE = "pl.col('ts').dt.truncate('1m')"
WIDE = "cast(pl.Int64)"  # Polars adds up 32 bits in 32 bits
# By name: the file, keys, and the aggregate as penstock, DuckDB and Spark, and Polars have it.
WORK = {
    "sum": ("flows", ("src",), "sum(bytes)", "sum(bytes)", f"pl.col('bytes').{WIDE}.sum()"),
    "pairs": ("flows", ("src", "dst"), "count(*)", "count(*)", "pl.len()"),
    "distinct": ("flows", ("src",), "count(DISTINCT dst)", "count(DISTINCT dst)", "pl.col('dst').n_unique()"),
    "approx": ("wide", ("a",), "approx_count_distinct(b)", "approx_count_distinct(b)", "pl.col('b').approx_n_unique()"),
    "approx, sum": ("wide", ("a",), "sum(b)", "sum(b)", f"pl.col('b').{WIDE}.sum()"),
}
DUCK = "import duckdb, sys; duckdb.sql(sys.argv[1]).arrow().read_all()"
POLAR = "import polars as pl, sys; eval(sys.argv[1])"
SPARKS = """
import os, sys
from penstock.runtime.spark.java import ensure_java
ensure_java()
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
spark.read.parquet(sys.argv[2]).createOrReplaceTempView("input")
spark.sql(sys.argv[1]).write.format("noop").mode("overwrite").save()
spark.stop()
"""


@dataclass(frozen=True)
class Command:
    """An engine on a piece of work, as arguments of Python."""

    engine: str
    work: str
    arguments: Sequence[str]


@dataclass
class Measured:
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    note: str = ""


def run(
    *,
    work: Path,
    rows: int = ROWS,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the figures as JSON data."""
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    commands = commands_on(arranged(work, rows, tell))
    known = (PENSTOCK, DUCKDB, POLARS, SPARK)
    unknown = sorted(set(engines or ()) - set(known))
    if unknown:
        raise ConfigError(f"unknown engine '{unknown[0]}'", f"engines are {', '.join(known)}")
    chosen = [command for command in commands if not engines or command.engine in engines]
    found = {(command.engine, command.work): Measured() for command in chosen}
    times = QUICK_TIMES if quick else TIMES
    for number in range(times):
        for command in chosen:
            tell(f"{command.work}, {command.engine}: {number + 1} of {times}")
            one = found[command.engine, command.work]
            if not one.note:
                measure(command, work, one)
    results = [line(command, found) for command in chosen]
    return {"name": "details", "machine": machine.describe(), "rows": rows, "times": times, "results": results}


def arranged(work: Path, rows: int, tell: Progress) -> dict[str, Path]:
    """The files, by name."""
    from penstock.sources.generate.source import open_generate
    from penstock.sources.parquet.write import write_parquet

    work.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, kind, options in (
        ("flows", "flows", {}),
        ("wide", "uniform", {"cardinality": str(min(GROUPS, max(10, rows // 10)))}),
    ):
        found[name] = work / f"details-{name}-{rows}.parquet"
        if not found[name].exists():
            tell(f"generating {name}")
            write_parquet(open_generate(kind, {"rows": str(rows), **options}), found[name])
    return found


def commands_on(files: dict[str, Path]) -> tuple[Command, ...]:
    made = []
    for name, (source, keys, ours, theirs, polars) in WORK.items():
        file, by = str(files[source]), ", ".join(keys)
        minutes = source == "flows"
        window = f" {MINUTE}" if minutes else ""
        mine = f"SELECT {by}, {ours} AS n FROM '{file}'{window} GROUP BY {by}"
        duck, spark = (
            f"SELECT {minute}{by}, {theirs} AS n FROM {place} GROUP BY {minute}{by}"
            for place, minute in (
                (f"'{file}'", f"{DUCK_MINUTE}, " if minutes else ""),
                ("input", f"{SPARK_MINUTE}, " if minutes else ""),
            )
        )
        grouped = [POLARS_MINUTE] if minutes else []
        frame = (
            f"pl.scan_parquet({file!r}).group_by([{', '.join([*grouped, *map(repr, keys)])}]).agg({polars}).collect()"
        )
        made += [
            Command(PENSTOCK, name, ("-m", "penstock", "query", "--format", "parquet", "-o", f"{file}.out", mine)),
            Command(DUCKDB, name, ("-c", DUCK, duck)),
            Command(POLARS, name, ("-c", POLAR, frame)),
            Command(SPARK, name, ("-c", SPARKS, spark, file)),
        ]
    return tuple(made)


def measure(command: Command, work: Path, into: Measured) -> None:
    """Run it once; a note where it does not end as it should."""
    python = interpreter(command.engine) if command.engine == POLARS else sys.executable
    if python is None:
        into.note = NOT_INSTALLED
        return
    log = work / "details.log"
    used = measured([python, *command.arguments], work, log)
    if used.code != 0:
        said = log.read_text(errors="replace").strip().splitlines()[-1:]
        into.note = said[0] if said else f"ended with {used.code}"
        return
    into.wall.append(used.wall)
    into.processor.append(used.processor)
    into.memory.append(used.memory)


def line(command: Command, measured: dict[tuple[str, str], Measured]) -> dict[str, Any]:
    """The figures of a command; ratios are to penstock on the same work, and of penstock to its own pairs."""
    found, ours = measured[command.engine, command.work], measured.get((PENSTOCK, command.work))
    pairs = measured.get((command.engine, "pairs"))
    return {
        "engine": command.engine,
        "version": "",
        "work": command.work,
        "seconds": median(found.wall) if found.wall else None,
        "cpu_seconds": median(found.processor) if found.processor else None,
        "memory": max(found.memory, default=None),
        "ratio_to_penstock": _ratio(found, ours),
        "ratio_to_pairs": _ratio(found, pairs),
        "same_answer": None,
        "note": found.note,
    }


def _ratio(mine: Measured, other: Measured | None) -> float | None:
    if other is None or not mine.wall or not other.wall:
        return None
    return round(median(mine.wall) / median(other.wall), 3)
