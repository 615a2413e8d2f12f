"""The benchmark `multiquery`: 12, 20 and 78 aggregations on one stream, by penstock and by its peers.

The queries are the first n of the 78 pairs of the 13 attributes of a flow trace; each counts records and sums
bytes per pair and 5-minute window.  Engines run one after the other, each in a process of its own, on the same
records; slow ones on a prefix, and are compared per record.  An answer counts when the digests of all its
queries equal those of pyarrow on the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.bench import data, machine, memory
from penstock.bench.job import Answer, Job
from penstock.bench.peers import named, run_engine

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Contender:
    """An engine of the benchmark; `prefix` limits its rows, `part_rows` asks for a folder of part files."""

    name: str
    module: str
    package: str = ""  # what the peers' environment must have; empty for engines of our own environment
    mode: str = ""
    prefix: int = 0
    part_rows: int = 0
    note: str = ""
    counts: tuple[int, ...] = ()  # of queries, if not all: slow peers only where they matter


CONTENDERS = (
    Contender("penstock", "penstock", mode="auto", note="writes Parquet; without the first micro-batch"),
    Contender("penstock_unshared", "penstock", mode="none", note="the same with --plan none"),
    Contender(
        "spark_streaming", "spark_streaming", part_rows=400_000, counts=(12,), note="tuned: a shuffle task a core"
    ),
    Contender(
        "spark_streaming_default",
        "spark_streaming",
        mode="default",
        prefix=800_000,
        part_rows=400_000,
        counts=(12,),
        note="as shipped: 200 shuffle tasks; per record, on a prefix",
    ),
    Contender("spark_grouping_sets", "spark_grouping_sets", counts=(20,), note="batch"),
    Contender("duckdb", "duckdb", "duckdb", note="batch, in process, separate queries"),
    Contender("duckdb_grouping_sets", "duckdb", "duckdb", "grouping_sets", note="batch, in process"),
    Contender("polars", "polars", "polars", note="batch, in process, collect_all"),
)
COUNTS, QUICK_COUNTS = (12, 20, 78), (12,)
QUICK_ROWS = 1_000_000
QUICK_PREFIX = 200_000
TIMEOUT = 3600.0


def run(
    *,
    work: Path,
    rows: int = 5_000_000,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run it in the folder `work` (data made there is kept for the next run) and return the result as JSON data."""
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    chosen = _choose(engines, quick)
    work.mkdir(parents=True, exist_ok=True)
    rate = rows / data.SPAN
    file = data.flow_file(work, rows, rate, tell)
    results: list[dict[str, Any]] = []
    for count in QUICK_COUNTS if quick else COUNTS:
        job = Job(
            str(file),
            rows,
            data.PAIRS[:count],
            str(work),
            machine.cores(),
            0.0,
            batch_rows=min(1_000_000, max(1, rows // 5)),
        )
        results += with_ratios(list(_compare(chosen, job, tell)))
    report: dict[str, Any] = {"name": "multiquery", "machine": machine.describe(), "rows": rows, "results": results}
    if any(contender.name == "penstock" for contender in chosen):
        report["memory"] = memory.growth(work, rows // 10 if quick else rows, rate, tell)
    return report


def _choose(engines: list[str] | None, quick: bool) -> list[Contender]:
    chosen = named(CONTENDERS, engines)
    return [_shortened(c) for c in chosen] if quick else chosen


def _shortened(contender: Contender) -> Contender:
    if not contender.part_rows:
        return contender
    return replace(contender, prefix=QUICK_PREFIX, part_rows=QUICK_PREFIX // 2)


def _compare(contenders: list[Contender], job: Job, tell: Progress) -> Iterator[dict[str, Any]]:
    expected: dict[int, Answer | str] = {}
    for contender in (c for c in contenders if not c.counts or len(job.queries) in c.counts):
        own = _own_job(contender, job)
        tell(f"{contender.name}: {len(job.queries)} queries, {own.rows:,} records")
        answer = run_engine(contender.module, contender.package, own, TIMEOUT)
        if isinstance(answer, Answer) and own.rows not in expected:
            tell(f"reference answers of {own.rows:,} records")
            plain = data.prefix(Path(job.file), own.rows) if own.rows < job.rows else Path(job.file)
            expected[own.rows] = run_engine("arrow", "", replace(job, file=str(plain), rows=own.rows), TIMEOUT)
        yield _line(contender, own, answer, expected.get(own.rows, ""))


def _own_job(contender: Contender, job: Job) -> Job:
    rows = min(contender.prefix or job.rows, job.rows)
    file = Path(job.file)
    if contender.part_rows:
        file = data.parts(file, rows, min(contender.part_rows, max(1, rows // 2)))  # two at least: one is warm
    elif rows < job.rows:
        file = data.prefix(file, rows)
    return replace(job, file=str(file), rows=rows, mode=contender.mode)


def _line(contender: Contender, job: Job, answer: Answer | str, expected: Answer | str) -> dict[str, Any]:
    line: dict[str, Any] = {"engine": contender.name, "work": f"{len(job.queries)} queries", "rows": job.rows}
    if isinstance(answer, str):
        return {**line, "version": "", "seconds": None, "same_answer": False, "note": answer}
    same = isinstance(expected, Answer) and answer.digests == expected.digests
    notes = [contender.note, answer.note, "" if isinstance(expected, Answer) else f"reference {expected}"]
    return {
        **line,
        "version": answer.version,
        "rows": answer.rows,
        "seconds": round(answer.seconds, 4),
        "seconds_cold": round(answer.seconds_cold, 3),
        "rows_per_second": round(answer.rows / answer.seconds) if answer.seconds > 0 else None,
        "same_answer": same,
        "note": "; ".join(filter(None, notes)),
        **({"extra": answer.extra} if answer.extra else {}),
    }


def with_ratios(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add how many times longer than penstock each engine takes per record; None where one has no figure."""
    ours = next((line for line in lines if line["engine"] == "penstock" and line["seconds"]), None)
    for line in lines:
        comparable = ours is not None and line["seconds"] and line["rows"]
        line["ratio_to_penstock"] = (
            round(line["seconds"] / line["rows"] / (ours["seconds"] / ours["rows"]), 3)
            if ours is not None and comparable
            else None
        )
    return lines
