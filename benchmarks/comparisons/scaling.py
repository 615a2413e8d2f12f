"""The benchmark `scaling`: what a record costs penstock with more queries, more data, and more cores.

One of the three grows at a time: 1, 5, 20 and 78 queries; a stream of the same rate that is 1, 3 and 10 times as long;
1 core and all of them, of 20 queries and of all.  Everything writes Parquet files, in micro-batches of the same size;
warm, without the first of them.  Records hardly repeat (`flows`) or do (`packets`); an engine is a value of --plan, on
Spark, or one with `/process`, without.  With the number of queries, also what the tasks alone take in one thread
(`engines.penstock_parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.comparisons.peers import run_engine
from benchmarks.data import files as data
from benchmarks.engines.penstock import PROCESS
from benchmarks.measure import jobs, machine
from benchmarks.measure.figures import scaled
from benchmarks.measure.job import Answer, EngineJob
from penstock.errors import ConfigError
from penstock.sharing.options import AUTO, Planning

Progress = Callable[[str], None]

ROWS, QUICK_ROWS = 2_000_000, 100_000
COUNTS, QUICK_COUNTS = (1, 5, 20, 78), (1, 5)
LONGER, QUICK_LONGER = (1, 3, 10), (1, 3)
QUERIES = 20  # while data or cores grow, at most
PARTS_ROWS = 1_000_000
TIMEOUT = 3600.0
MERGING = ("merge", "roll up", "finish", "sink")
STREAMS = {"flows": (data.flows, data.flow_file), "packets": (data.packets, data.packet_file)}


@dataclass(frozen=True)
class Point:
    """One run."""

    queries: int
    times: int  # as long a stream
    cores: int


@dataclass(frozen=True)
class Given:
    """A stream of `rows` records, and how it is run."""

    stream: str
    plan: str
    rows: int
    work: Path


def points(counts: Sequence[int], longer: Sequence[int], cores: int) -> Iterator[tuple[str, Point]]:
    """What grows, and the runs in which it does."""
    usual = max((count for count in counts if count <= QUERIES), default=counts[0])
    yield from (("queries", Point(count, 1, cores)) for count in counts)
    yield from (("data", Point(usual, times, cores)) for times in longer)
    for queries in dict.fromkeys((usual, counts[-1])):
        yield from (("cores", Point(queries, 1, count)) for count in sorted({1, cores}))


def run(
    *,
    work: Path,
    rows: int = ROWS,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
    queries: Sequence[int] | None = None,
    streams: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Run it in the folder `work` and return the figures as JSON data; `engines` are values of --plan, with `/process`
    where there is no Spark, and `streams` names of `STREAMS`."""
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    counts = tuple(sorted(queries or (QUICK_COUNTS if quick else COUNTS)))
    if not 1 <= counts[0] <= counts[-1] <= len(data.PAIRS):
        raise ConfigError(f"there are no {counts[-1]} queries", f"13 attributes have {len(data.PAIRS)} pairs")
    names = tuple(streams or (("flows",) if quick else STREAMS))
    for name in names:
        if name not in STREAMS:
            raise ConfigError(f"unknown data '{name}'", f"data are {', '.join(STREAMS)}")
    every = [checked(name) for name in engines or ([AUTO] if quick else [AUTO, f"{AUTO}/{PROCESS}"])]
    work.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    for name, plan in product(names, every):
        given = Given(name, plan, rows, work)
        done: dict[Point, dict[str, Any]] = {}
        for axis, point in points(counts, QUICK_LONGER if quick else LONGER, machine.cores()):
            if point not in done:
                done[point] = _figures(point, given, tell)
            line = {"engine": "penstock", "data": name, "plan": plan, "axis": axis, "work": _text(point, rows)}
            line |= done[point]
            if axis == "queries":
                line |= _tasks(point, given, tell)
            results.append(line)
    return {"name": "scaling", "machine": machine.describe(), "rows": rows, "results": with_ratios(results)}


def checked(engine: str) -> str:
    """A value of --plan, if there is such a one, with or without Spark."""
    plan, slash, master = engine.partition("/")
    if slash and master != PROCESS:
        raise ConfigError(f"unknown engine '{engine}'", f"write a value of --plan, or one with /{PROCESS}")
    return Planning(plan).checked().plan + slash + master


def _text(point: Point, rows: int) -> str:
    cores = "1 core" if point.cores == 1 else f"{point.cores} cores"
    queries = "1 query" if point.queries == 1 else f"{point.queries} queries"
    return f"{queries}, {rows * point.times:,} records, {cores}"


def _job(point: Point, given: Given, tell: Progress) -> EngineJob:
    short, file_of = STREAMS[given.stream]
    found = short(given.work, given.rows, tell)
    file = file_of(given.work, given.rows * point.times, given.rows / data.SPAN, tell)
    job = jobs.job_of(replace(found, file=file, rows=given.rows * point.times), point.queries, given.work)
    mode = given.plan.replace("/", " ")
    return replace(job, mode=mode, threads=point.cores, batch_rows=max(1, given.rows // 5))


def _figures(point: Point, given: Given, tell: Progress) -> dict[str, Any]:
    rows = given.rows
    tell(f"penstock --plan {given.plan}: {given.stream}, {_text(point, rows)}")
    answer = run_engine("penstock", "", _job(point, given, tell), TIMEOUT)
    line: dict[str, Any] = {"queries": point.queries, "times": point.times, "cores": point.cores, "same_answer": None}
    if isinstance(answer, str):
        return {**line, "version": "", "rows": rows * point.times, "seconds": None, "note": answer}
    cpu = answer.cpu_seconds or 0.0
    return {
        **line,
        "version": answer.version,
        "rows": answer.rows,
        "seconds": round(answer.seconds, 4),
        "seconds_cold": round(answer.seconds_cold, 3),
        "cpu_seconds": round(cpu, 3),
        "us_per_record": round(1e6 * answer.seconds / answer.rows, 4),
        "cpu_us_per_record": round(1e6 * cpu / answer.rows, 4),
        "memory": answer.extra.get("memory", {}),
        "note": answer.note,
    }


def _tasks(point: Point, given: Given, tell: Progress) -> dict[str, Any]:
    """What tasks and merges take in one thread, without Spark."""
    fewer = replace(given, rows=min(given.rows, PARTS_ROWS))
    tell(f"its tasks alone: {given.stream}, {_text(point, fewer.rows)}")
    answer = run_engine("penstock_parts", "", _job(point, fewer, tell), TIMEOUT)
    if not isinstance(answer, Answer):
        return {"tasks_us_per_record": None, "merge_us_per_record": None}
    spent = {part["part"]: part["ns_per_record"] / 1000 for part in answer.extra["parts"]}
    merge = sum(spent.pop(part) for part in MERGING)
    return {"tasks_us_per_record": round(sum(spent.values()), 4), "merge_us_per_record": round(merge, 4)}


def with_ratios(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times the cost of a record is that of the first line that it can be compared with."""
    for alike in scaled(lines).values():
        base = alike[0]["seconds"] and alike[0]["us_per_record"]
        for line in alike:
            comparable = base and line["seconds"]
            line["ratio_to_penstock"] = round(line["us_per_record"] / base, 3) if comparable else None
    return lines
