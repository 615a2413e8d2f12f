"""The benchmark `multiquery`: 12, 20 and 78 aggregations on one stream, by penstock and by its peers.

The queries are the first n of those of a stream (`benchmarks.data.files`): 78 pairs of 13 attributes, or 24 prefixes
and pairs of such; each counts records and sums bytes per key and window. Engines run one after the other, each in a
process of its own, on the same records; slow ones on a prefix, and are compared per record. Results go to Parquet
files, and in a run of their own to a sink that drops them. An answer counts when the digests of all its queries equal
those of pyarrow on the same records; of dropped rows the number must be right, where an engine tells it. The data
`monitoring` have a dozen queries of their own (`benchmarks.engines.monitoring.questions`).

With `repeat` engines run in turn, with results dropped, and their processor time is compared pair by pair
(`benchmarks.measure.paired`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.comparisons import parts
from benchmarks.comparisons.contenders import (
    CONTENDERS,
    MONITORING,
    PARTS,
    PROCESS,
    PROCESS_UNSHARED,
    SINKS,
    TEXTS,
    Contender,
)
from benchmarks.comparisons.peers import named, run_engine
from benchmarks.data import files as data
from benchmarks.measure import jobs, machine, memory, paired
from benchmarks.measure.digest import agrees
from benchmarks.measure.job import DISCARD, Answer, EngineJob
from penstock.errors import ConfigError

Progress = Callable[[str], None]
Expected = dict[int, Answer | str]  # by number of records

COUNTS, QUICK_COUNTS = (12, 20, 78), (12,)
ROWS, PAIRED_ROWS, QUICK_ROWS = 10_000_000, 2_000_000, 1_000_000
GAP = timedelta(days=62)  # before the record that closes all windows
TIMEOUT = 3600.0


def run(
    *,
    work: Path,
    rows: int | None = None,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
    queries: Sequence[int] | None = None,
    streams: Sequence[str] | None = None,
    repeat: int | None = None,
) -> dict[str, Any]:
    """Run it in the folder `work` (data made there is kept for the next run) and return the result as JSON data.

    `queries` are numbers of queries, `streams` names of `data.DATA`; a quick run has but the first of each.
    """
    tell = progress or (lambda text: None)
    rows = rows or (PAIRED_ROWS if repeat else ROWS)
    rows = min(rows, QUICK_ROWS) if quick else rows
    asked = engines or ([PROCESS, PROCESS_UNSHARED] if repeat else None)
    chosen = [contender.shortened() if quick else contender for contender in named(CONTENDERS, asked)]
    counts, names = checked(queries, streams, quick)
    work.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"name": "multiquery", "machine": machine.describe(), "rows": rows, "results": []}
    for name in names:
        found = data.DATA[name](work, rows, tell)
        if isinstance(found, str):
            report.setdefault("notes", []).append(f"{name}: {found}")
            continue
        if repeat:
            most = max(_counts(found, counts))
            report["results"] += list(_paired(chosen, found, most, work, repeat, tell))
            continue
        for count in _counts(found, counts):
            report["results"] += with_ratios(list(_compare(chosen, found, count, work, tell)))
    if repeat:
        return {**report, "rounds": repeat}
    if any(contender.name == "penstock" for contender in chosen):
        report["parts"] = parts.measured(names, max(counts), rows, work, tell)
        report["memory"] = memory.growth(work, rows // 10 if quick else rows, max(counts), tell)
    return report


def checked(
    queries: Sequence[int] | None, streams: Sequence[str] | None, quick: bool
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers of queries and names of data, if there are such."""
    counts = tuple(queries or (QUICK_COUNTS if quick else COUNTS))
    for count in counts:
        if not 1 <= count <= len(data.PAIRS):
            raise ConfigError(f"there are no {count} queries", f"13 attributes have {len(data.PAIRS)} pairs")
    names = tuple(streams or (("flows",) if quick else data.DATA))
    for name in names:
        if name not in data.DATA:
            raise ConfigError(f"unknown data '{name}'", f"data are {', '.join(data.DATA)}")
    return counts, names


def _counts(found: data.Data, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of queries on these data; all of them where there are fewer."""
    if len(found.queries) < max(counts):
        return (len(found.queries),)
    return counts


def _paired(
    contenders: list[Contender], found: data.Data, count: int, work: Path, times: int, tell: Progress
) -> Iterator[dict[str, Any]]:
    """A line for each engine, whose processor time is compared with that of the first."""
    whole = replace(jobs.job_of(found, count, work), sink=DISCARD)
    taking = [one for one in contenders if one.takes(found.name, DISCARD, count)]
    own = {one.name: _own_job(one, whole) for one in taking}
    for one in taking:
        if one.module == "penstock":
            own[one.name] = replace(own[one.name], mode=f"{one.mode} ready")
    runs = [
        (one.name, partial(run_engine, one.program(found.name), one.package, own[one.name], TIMEOUT)) for one in taking
    ]
    answers = paired.in_turn(runs, times, lambda text: tell(f"{found.name}, {count} queries, {text}"))
    for line in paired.lines(answers):
        told = answers[line["engine"]]
        counted = {answer.digests for answer in told} if not isinstance(told, str) else set()
        others = {answer.digests for each in answers.values() if not isinstance(each, str) for answer in each}
        agreed = None if counted == {()} or line["seconds"] is None else len(others - {()}) == 1
        work_text = f"{found.name}: {count} queries, {whole.rows:,} records, results discarded"
        yield {**line, "work": work_text, "data": found.name, "sink": DISCARD, "queries": count, "same_answer": agreed}


def _compare(
    contenders: list[Contender], found: data.Data, count: int, work: Path, tell: Progress
) -> Iterator[dict[str, Any]]:
    expected: Expected = {}
    reference = "monitoring.arrow" if found.name == MONITORING else "arrow"
    for sink, title in SINKS.items():
        whole = replace(jobs.job_of(found, count, work), sink=sink)
        for contender in (c for c in contenders if c.takes(found.name, sink, count)):
            own = _own_job(contender, whole)
            tell(f"{contender.name}: {found.name}, {count} queries, {own.rows:,} records, {title}")
            answer = run_engine(contender.program(found.name), contender.package, own, TIMEOUT)
            if isinstance(answer, Answer) and own.rows not in expected:
                tell(f"reference answers of {own.rows:,} records")
                plain = data.prefix(found.file, own.rows, work)
                expected[own.rows] = run_engine(reference, "", replace(whole, file=str(plain), rows=own.rows), TIMEOUT)
            line = _line(contender, own, answer, expected.get(own.rows, ""))
            tell(f"{contender.name}: {_told(line)}")
            yield {**line, "work": f"{found.name}: {count} queries, {title}", "data": found.name, "sink": sink}


def _told(line: dict[str, Any]) -> str:
    """The outcome in a few words."""
    if line["seconds"] is None:
        return str(line["note"])
    same = "same answer" if line["same_answer"] else "answers compared by nobody or not the same"
    return f"{line['rows']:,} records in {line['seconds']:.1f} s warm, all in {line['seconds_cold']:.1f} s cold; {same}"


def _own_job(contender: Contender, job: EngineJob) -> EngineJob:
    rows = contender.rows(len(job.queries), job.rows)
    file, work = Path(job.file), Path(job.work)
    if contender.form == PARTS:  # two at least: one is warm
        file = data.parts(file, rows, min(contender.part_rows, max(1, rows // 2)), work, GAP)
    elif contender.form == TEXTS:
        file = data.texts(file, rows, job.threads, work)
    else:
        file = data.prefix(file, rows, work)
    return replace(job, file=str(file), rows=rows, mode=contender.mode)


def _line(contender: Contender, job: EngineJob, answer: Answer | str, expected: Answer | str) -> dict[str, Any]:
    line: dict[str, Any] = {"engine": contender.name, "queries": len(job.queries), "rows": job.rows}
    if isinstance(answer, str):
        return {**line, "version": "", "seconds": None, "same_answer": False, "note": answer}
    same = agrees(answer.digests, expected.digests) if isinstance(expected, Answer) else False
    notes = [contender.note, answer.note, "" if isinstance(expected, Answer) else f"reference {expected}"]
    cpu = answer.cpu_seconds
    return {
        **line,
        "version": answer.version,
        "rows": answer.rows,
        "seconds": round(answer.seconds, 4),
        "seconds_cold": round(answer.seconds_cold, 3),
        "rows_cold": job.rows,
        "rows_per_second": round(answer.rows / answer.seconds) if answer.seconds > 0 else None,
        "cpu_seconds": round(cpu, 3) if cpu is not None else None,
        "rows_per_core_second": round(answer.rows / cpu) if cpu else None,
        "same_answer": same,
        "note": "; ".join(filter(None, notes)),
        **({"extra": answer.extra} if answer.extra else {}),
    }


def with_ratios(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add how many times longer than penstock each engine takes per record, for the same work: warm wall time, cold
    wall time and warm processor time; None where one has no figure."""
    for name, figure, rows in (
        ("ratio_to_penstock", "seconds", "rows"),
        ("cold_ratio_to_penstock", "seconds_cold", "rows_cold"),
        ("core_ratio_to_penstock", "cpu_seconds", "rows"),
    ):
        ours = {line["work"]: line for line in lines if line["engine"] == "penstock" and line.get(figure)}
        for line in lines:
            base = ours.get(line["work"])
            line[name] = (
                round(line[figure] / line[rows] / (base[figure] / base[rows]), 3)
                if base is not None and line.get(figure) and line[rows]
                else None
            )
    return lines
