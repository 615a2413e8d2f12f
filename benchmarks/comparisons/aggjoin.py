"""The benchmark `aggjoin`: two streams joined by a key in windows and grouped by a column of each side, by penstock, by
DuckDB window by window, and by Spark's join of streams followed by an aggregation.

Cases (`benchmarks.data.joins`) differ in records of a window and in pairs that a key makes, with windows that tumble
and windows that slide by a tenth. Engines run one after the other, each in a process of its own, on the same files; an
answer counts when its digest equals that of pyarrow. Engines that go through all pairs read a prefix, and are compared
per record; where a single window would take them minutes, they are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.comparisons.multiquery import with_ratios
from benchmarks.comparisons.peers import named, run_engine
from benchmarks.data.files import parts, prefix
from benchmarks.data.joins import CASES, MOVEMENTS, RANGE, WINDOWS, JoinCase, Movement, join_files
from benchmarks.measure import machine
from benchmarks.measure.digest import agrees
from benchmarks.measure.job import Answer, JoinJob
from penstock.errors import ConfigError

Progress = Callable[[str], None]
Expected = dict[int, Answer | str]  # by number of records

ROWS, QUICK_ROWS = 2_400_000, 30_000  # of each stream: of the longest case
BATCHES = 6  # micro-batches of a run, about
PARTS = 3
GAP = timedelta(days=62)  # before the record that closes all windows
TIMEOUT = 300.0
PATIENCE = 5


@dataclass(frozen=True)
class JoinContender:
    """An engine of the benchmark. `pairs` and `copies` limit the pairs of records that it goes through, and the records
    that it keeps, one for each window that they are in: it reads a prefix. The shortest one may have `PATIENCE` times
    as many; beyond that it would take more than five minutes."""

    name: str
    module: str
    package: str = ""
    mode: str = ""
    pairs: int = 0
    copies: int = 0
    streaming: bool = False  # reads part files
    note: str = ""

    def slides(self, case: JoinCase, movement: Movement) -> int:
        """How many slides of the stream it reads, at least two windows that tumble or one that slides; 0: none."""
        least = shortest(movement)
        for count in range(movement.slides, least - 1, -1):
            if self.takes(case, movement, count):
                return count
        return least if self.takes(case, movement, least, PATIENCE) else 0

    def takes(self, case: JoinCase, movement: Movement, slides: int, times: int = 1) -> bool:
        """Whether so many slides are within the limits, or so many times them."""
        few = not self.pairs or movement.pairs(case, slides) <= times * self.pairs
        return few and (not self.copies or _copies(case, movement, slides) <= times * self.copies)


def shortest(movement: Movement) -> int:
    """Slides of two windows that tumble, or of one that slides."""
    return max(2, movement.steps)


def _copies(case: JoinCase, movement: Movement, slides: int) -> int:
    return 2 * movement.rows(case, slides) * movement.steps


CONTENDERS = (
    JoinContender("penstock", "joins.penstock", note="on Spark, after the first micro-batch that closes windows"),
    JoinContender("penstock_process", "joins.penstock", mode="process", note="--master process, likewise"),
    JoinContender(
        "penstock_late",
        "joins.penstock",
        mode="process late",
        note="--master process --joins late: records are stored as they come, and grouped when windows close",
    ),
    JoinContender("duckdb", "joins.duckdb", "duckdb", note="in memory, window by window"),
    JoinContender(
        "duckdb_late",
        "joins.duckdb",
        "duckdb",
        "late",
        pairs=1_000_000_000,
        note="the same without partial_aggregate_pushdown",
    ),
    JoinContender(
        "spark_stream_join",
        "joins.spark",
        pairs=60_000_000,
        copies=4_000_000,
        streaming=True,
        note="stream-stream join by (window, key), then groupBy",
    ),
)


def run(
    *,
    work: Path,
    rows: int = ROWS,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
    streams: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Run it in the folder `work` (data made there is kept for the next run) and return the result as JSON data.

    `rows` are those of a stream at most; `streams` are names of cases.
    """
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    chosen = named(CONTENDERS, engines)
    work.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"name": "aggjoin", "machine": machine.describe(), "rows": rows, "results": []}
    for case in cases(streams, rows):
        files = join_files(work, case, tell)
        for movement in MOVEMENTS:
            report["results"] += with_ratios(list(_compare(chosen, case, movement, files, work, tell)))
    return report


def cases(names: Sequence[str] | None, rows: int) -> list[JoinCase]:
    """These cases, or all, with at most so many records in a stream."""
    known = [case.name for case in CASES]
    for name in names or ():
        if name not in known:
            raise ConfigError(f"unknown data '{name}'", f"data are {', '.join(known)}")
    return [case.shortened(rows // WINDOWS) for case in CASES if not names or case.name in names]


def _compare(
    contenders: list[JoinContender],
    case: JoinCase,
    movement: Movement,
    files: tuple[Path, Path],
    work: Path,
    tell: Progress,
) -> Iterator[dict[str, Any]]:
    expected: Expected = {}
    title = f"{case.name}: {case.what}, {movement.name}"
    for contender in contenders:
        slides = contender.slides(case, movement)
        if not slides:
            answer: Answer | str = _skipped(contender, case, movement)
            rows = 0
        else:
            rows = movement.rows(case, slides)
            tell(f"{contender.name}: {title}, {2 * rows:,} records")
            plain = _job(files, rows, movement, work)
            answer = run_engine(contender.module, contender.package, _own(contender, plain), TIMEOUT)
            if isinstance(answer, Answer) and rows not in expected:
                tell(f"reference answers of {2 * rows:,} records")
                expected[rows] = run_engine("joins.arrow", "", plain, TIMEOUT)
        line = _line(contender, rows, movement.slides == slides, answer, expected.get(rows, ""))
        tell(f"{contender.name}: {line['note'] if line['seconds'] is None else _told(line)}")
        yield {**line, "work": title, "case": case.name, "windows": movement.name}


def _skipped(contender: JoinContender, case: JoinCase, movement: Movement) -> str:
    least = shortest(movement)
    pairs, kept = movement.pairs(case, least), _copies(case, movement, least)
    many = contender.pairs and pairs > PATIENCE * contender.pairs
    what = f"{pairs:,} pairs" if many else f"{kept:,} records in state"
    return f"left out: {what} even of the shortest stream, more than five minutes"


def _told(line: dict[str, Any]) -> str:
    same = "same answer" if line["same_answer"] else "NOT the same answer"
    return f"{line['rows']:,} records in {line['seconds']:.2f} s warm, all in {line['seconds_cold']:.1f} s cold; {same}"


def _job(files: tuple[Path, Path], rows: int, movement: Movement, work: Path) -> JoinJob:
    left, right = (str(prefix(file, rows, work)) for file in files)
    return JoinJob(
        left, right, rows, str(work), machine.cores(), 0.0,
        range_seconds=RANGE, slide_seconds=movement.slide_seconds, batch_rows=max(1, rows // BATCHES),
    )  # fmt: skip


def _own(contender: JoinContender, job: JoinJob) -> JoinJob:
    own = replace(job, mode=contender.mode)
    if not contender.streaming:
        return own
    size, work = max(1, -(-job.rows // PARTS)), Path(job.work)
    left, right = (str(parts(Path(file), job.rows, size, work, GAP)) for file in (job.left, job.right))
    return replace(own, left=left, right=right)


def _line(
    contender: JoinContender, rows: int, whole: bool, answer: Answer | str, expected: Answer | str
) -> dict[str, Any]:
    line: dict[str, Any] = {"engine": contender.name, "rows": 2 * rows}
    if isinstance(answer, str):
        return {**line, "version": "", "seconds": None, "same_answer": False, "note": answer}
    same = agrees(answer.digests, expected.digests) if isinstance(expected, Answer) else False
    notes = [contender.note, "" if whole else "on a prefix", answer.note]
    notes += ["" if isinstance(expected, Answer) else f"reference {expected}"]
    joining, windows = answer.extra.get("join_seconds"), answer.extra.get("windows")
    return {
        **line,
        "version": answer.version,
        "rows": answer.rows,
        "seconds": round(answer.seconds, 4),
        "seconds_cold": round(answer.seconds_cold, 3),
        "rows_cold": 2 * rows,
        "cpu_seconds": None if answer.cpu_seconds is None else round(answer.cpu_seconds, 3),
        "ms_a_window": round(1000 * joining / windows, 2) if joining and windows else None,
        "state_bytes": answer.extra.get("state_bytes"),
        "same_answer": same,
        "note": "; ".join(filter(None, notes)),
        **({"extra": answer.extra} if answer.extra else {}),
    }
