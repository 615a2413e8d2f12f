"""The benchmark `packets`: a dozen monitoring queries on a packet trace, by penstock and by monitoring tools.

    traces ──► a pcap file ──► peers.run_engine: a process per contender ──► engines.packets_<name>
       │                                                                        │ digests, seconds, CPU seconds
       └──► packets.reference: what the answers should be──► compared ◄─────────┘

Contenders run one after the other on the same packets; slow ones on a prefix, and are compared per packet. Tools
use threads or processes as they please, so processor time is compared beside wall time. An answer is compared as
far as a tool can give it (`benchmarks.packets.queries.Scope`); what was compared is said with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.comparisons.peers import named, run_engine
from benchmarks.data.traces import Trace, traces
from benchmarks.measure import machine
from benchmarks.measure.job import Answer, PacketJob
from benchmarks.packets.queries import NFDUMP, PMACCT, QUERIES, STATISTICS, Dialect, PacketScope
from benchmarks.packets.reference import Reference

Progress = Callable[[str], None]
ALL: Mapping[str, Dialect] = {query.name: Dialect("", PacketScope()) for query in QUERIES}
NOTHING: Mapping[str, Dialect] = {}


@dataclass(frozen=True)
class PacketContender:
    """`dialects`: what is compared of which query; `commands` must be installed; `threads` 0 are all cores."""

    name: str
    module: str
    mode: str = ""
    threads: int = 1
    commands: tuple[str, ...] = ()
    prefix: int = 0
    dialects: Mapping[str, Dialect] = field(default_factory=dict)
    note: str = ""


CONTENDERS = (
    PacketContender(
        "penstock",
        "packets_penstock",
        "run",
        0,
        dialects=ALL,
        note="all cores, writes Parquet; the file has been opened before",
    ),
    PacketContender("penstock_1core", "packets_penstock", "run", dialects=ALL, note="the same on local[1]"),
    PacketContender(
        "penstock_process", "packets_penstock", "run process", dialects=ALL, note="the same without Spark, one core"
    ),
    PacketContender(
        "penstock_like_nfdump",
        "packets_penstock",
        "whole process",
        dialects=NFDUMP,
        note="one core, no Spark: the 9 queries that nfdump answers, as it does, of the whole capture",
    ),
    PacketContender(
        "penstock_like_nfdump_spark", "packets_penstock", "whole", dialects=NFDUMP, note="the same on local[1]"
    ),
    PacketContender(
        "penstock_tasks", "packets_penstock", "tasks", note="no Spark: decode, tables, segments; no windows closed"
    ),
    PacketContender("penstock_tasks_unshared", "packets_penstock", "tasks none", note="the same with --plan none"),
    PacketContender("penstock_decode", "packets_penstock", "decode", note="no Spark: columns of the dozen queries"),
    PacketContender(
        "nfdump",
        "packets_nfdump",
        commands=("nfpcapd", "nfdump"),
        dialects=NFDUMP,
        note="9 queries, of the whole capture, not by window; IPv4 only but for targets and pairs",
    ),
    PacketContender(
        "tshark",
        "packets_tshark",
        commands=("tshark",),
        prefix=200_000,
        dialects=ALL,
        note="fields printed, grouped by pyarrow; on a prefix",
    ),
    PacketContender(
        "tshark_tables",
        "packets_tshark",
        "statistics",
        commands=("tshark",),
        prefix=200_000,
        dialects=STATISTICS,
        note="its own tables (-z); packets sent per IPv4 address compared; on a prefix",
    ),
    PacketContender(
        "pmacct",
        "packets_pmacct",
        commands=("pmacctd",),
        prefix=300_000,
        dialects=PMACCT,
        note="9 queries, minutes added up; on a prefix, as it loses packets that its tables are too slow for; "
        "its wall time is mostly waiting",
    ),
)
BATCH_ROWS = 4_000_000
QUICK_ROWS, QUICK_PREFIX = 100_000, 20_000
HOW = "apt install tshark nfdump pmacct"
TIMEOUT = 3600.0


def run(
    *,
    work: Path,
    rows: int = 10_000_000,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
    captures: Sequence[Path] | None = None,
) -> dict[str, Any]:
    """Run it in the folder `work` (data made there is kept for the next run) and return the result as JSON data."""
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    chosen = _choose(engines, quick)
    work.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    for trace in traces(work, rows, captures, quick, tell):
        results += with_ratios(_compare(chosen, trace, work, tell))
    return {"name": "packets", "machine": machine.describe(), "rows": rows, "results": results}


def _choose(engines: list[str] | None, quick: bool) -> list[PacketContender]:
    chosen = named(CONTENDERS, engines)
    return [replace(c, prefix=min(c.prefix, QUICK_PREFIX)) for c in chosen] if quick else chosen


def _compare(contenders: list[PacketContender], trace: Trace, work: Path, tell: Progress) -> list[dict[str, Any]]:
    answers = [(contender, _run(contender, trace, work, tell)) for contender in contenders]
    tell(f"{trace.name}: reference answers")
    try:
        reference: Reference | str = trace.reference()
    except OSError as error:
        reference = str(error)
    return [_line(contender, trace, answer, reference) for contender, answer in answers]


def _run(contender: PacketContender, trace: Trace, work: Path, tell: Progress) -> Answer | str:
    absent = [command for command in contender.commands if shutil.which(command) is None]
    if absent:
        return f"not installed: {HOW}"
    rows = min(contender.prefix or trace.rows, trace.rows)
    file = trace.prefix(rows)
    tell(f"{contender.name}: {rows:,} packets of {trace.name}")
    threads = contender.threads or machine.cores()
    batch = min(BATCH_ROWS, max(1, rows // 4))
    job = PacketJob(str(file), rows, str(work), threads, 0.0, contender.mode, batch)
    return run_engine(contender.module, "", job, TIMEOUT)


def _line(contender: PacketContender, trace: Trace, answer: Answer | str, reference: Reference | str) -> dict[str, Any]:
    work = f"{trace.name}: {len(QUERIES)} queries"
    line: dict[str, Any] = {"engine": contender.name, "work": work, "rows": contender.prefix or trace.rows}
    if isinstance(answer, str):
        return {**line, "version": "", "seconds": None, "same_answer": None, "note": answer}
    same, compared = _judge(contender, answer, reference, min(contender.prefix or trace.rows, trace.rows))
    cpu = answer.cpu_seconds
    return {
        **line,
        "version": answer.version,
        "rows": answer.rows,
        "seconds": round(answer.seconds, 4),
        "seconds_cold": round(answer.seconds_cold, 3),
        "rows_per_second": round(answer.rows / answer.seconds) if answer.seconds > 0 else None,
        "cpu_seconds": round(cpu, 3) if cpu is not None else None,
        "rows_per_core_second": round(answer.rows / cpu) if cpu else None,
        "same_answer": same,
        "note": "; ".join(
            filter(None, [contender.note, answer.note, compared, trace.note if contender.dialects else ""])
        ),
        **({"extra": answer.extra} if answer.extra else {}),
    }


def _judge(
    contender: PacketContender, answer: Answer, reference: Reference | str, rows: int
) -> tuple[bool | None, str]:
    """Whether all answers that can be compared are the reference's, and what is to be said of it; None: nothing was."""
    if not contender.dialects:
        return None, ""
    if isinstance(reference, str):
        return None, f"not compared: {reference}"
    differing = [
        query.name
        for query, digest in zip(QUERIES, answer.digests, strict=True)
        if query.name in contender.dialects
        and digest != reference.digest(query, contender.dialects[query.name].scope, rows)
    ]
    compared = f"{len(contender.dialects)} answers compared"
    return not differing, compared + (f", these differ: {', '.join(differing)}" if differing else "")


def with_ratios(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times longer than penstock per packet: wall time against all cores, CPU time against one core."""
    for name, figure, base in (
        ("ratio_to_penstock", "seconds", "penstock"),
        ("core_ratio_to_penstock", "cpu_seconds", "penstock_1core"),
    ):
        costs = {line["engine"]: line[figure] / line["rows"] for line in lines if line.get(figure)}
        for line in lines:
            cost = costs.get(line["engine"])
            line[name] = round(cost / costs[base], 3) if cost and costs.get(base) else None
    return lines
