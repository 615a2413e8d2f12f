"""The benchmark `aggjoin`: two streams joined by a key in windows and grouped by a column of each side, by penstock, by
DuckDB window by window, and by Spark's join of streams and Flink's window join, each followed by an aggregation.

Cases (`benchmarks.data.joins`) differ in records of a window and in pairs that a key makes, with windows that tumble
and windows that slide by a tenth. Engines run one after the other, each in a process of its own, on the same records;
an answer counts when its digest equals that of pyarrow. Engines that go through all pairs read a prefix, and are
compared per record; where a single window would take them minutes, they are left out. Then penstock's tasks alone are
compared with the least that there is to do for a record. `benchmarks.comparisons.join_goals` has what is aimed at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.comparisons.contenders import PARTS, TEXTS
from benchmarks.comparisons.join_contenders import CONTENDERS, JoinContender
from benchmarks.comparisons.join_goals import against, goals
from benchmarks.comparisons.multiquery import with_ratios
from benchmarks.comparisons.peers import named, run_engine
from benchmarks.data.files import parts, prefix, texts
from benchmarks.data.joins import CASES, MOVEMENTS, RANGE, WINDOWS, JoinCase, Movement, join_files
from benchmarks.engines.joins.penstock import joins_of
from benchmarks.measure import machine
from benchmarks.measure.digest import agrees
from benchmarks.measure.job import Answer, JoinJob
from penstock.errors import ConfigError

Progress = Callable[[str], None]
Expected = dict[int, Answer | str]  # by number of records

ROWS, QUICK_ROWS = 2_400_000, 30_000  # of each stream: of the longest case
BATCHES = 6  # micro-batches of a run, about
PART_FILES = 3
GAP = timedelta(days=62)  # before the record that closes all windows
TIMEOUT = 300.0
TIMED = ("seconds", "seconds_cold", "cpu_seconds", "ms_a_window")  # figures of a line that differ from run to run
TASKS = ("tasks_ns", "decode_ns", "probe_ns", "tasks_ratio")


def run(
    *,
    work: Path,
    rows: int = ROWS,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
    streams: Sequence[str] | None = None,
    repeat: int | None = None,
) -> dict[str, Any]:
    """Run it in the folder `work` (data made there is kept for the next run) and return the result as JSON data.

    `rows` are those of a stream at most; `streams` are names of cases. All engines run `repeat` times in turn.
    """
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    chosen, rounds = named(CONTENDERS, engines), repeat or 1
    work.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"name": "aggjoin", "machine": machine.describe(), "rows": rows, "results": []}
    report["repeat"] = rounds
    for case in cases(streams, rows):
        files = join_files(work, case, tell)
        for movement in MOVEMENTS:
            lines = list(_compare(chosen, case, movement, files, work, tell, rounds))
            report["results"] += with_ratios(lines)
    report["against"] = against(report["results"], [contender.name for contender in CONTENDERS if contender.ours])
    report["goals"] = goals(report["against"])
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
    repeat: int,
) -> Iterator[dict[str, Any]]:
    """A line for each engine: medians of so many rounds, in each of which all of them run."""
    expected: Expected = {}
    title = f"{case.name}: {case.what}, {movement.name}"
    runs: dict[str, list[dict[str, Any]]] = {contender.name: [] for contender in contenders}
    for _ in range(repeat):
        for contender in contenders:
            line = _run(contender, case, movement, files, work, tell, expected)
            runs[contender.name].append(line)
            tell(f"{contender.name}: {line['note'] if line['seconds'] is None else _told(line)}")
    tasks = _tasks(contenders, case, _job(files, case, movement, movement.slides, work), tell)
    for contender in contenders:
        line = {**middle(runs[contender.name]), **tasks.get(joins_of(contender.mode) if contender.ours else "", {})}
        yield {**line, "work": title, "case": case.name, "windows": movement.name}


def _run(
    contender: JoinContender,
    case: JoinCase,
    movement: Movement,
    files: tuple[Path, Path],
    work: Path,
    tell: Progress,
    expected: Expected,
) -> dict[str, Any]:
    slides = contender.slides(case, movement)
    if not slides:
        return _line(contender, 0, False, contender.left_out(case, movement), "")
    plain = _job(files, case, movement, slides, work)
    tell(f"{contender.name}: {case.name}, {movement.name}, {2 * plain.rows:,} records")
    answer = run_engine(contender.module, contender.package, _own(contender, plain), TIMEOUT)
    if isinstance(answer, Answer) and plain.rows not in expected:
        tell(f"reference answers of {2 * plain.rows:,} records")
        expected[plain.rows] = run_engine("joins.arrow", "", plain, TIMEOUT)
    return _line(contender, plain.rows, movement.slides == slides, answer, expected.get(plain.rows, ""))


def _tasks(
    contenders: list[JoinContender], case: JoinCase, job: JoinJob, tell: Progress
) -> dict[str, dict[str, float]]:
    """What tasks take beside decoding and a probe a record, by the value of `--joins` of our contenders."""
    found = {}
    for joins in dict.fromkeys(joins_of(contender.mode) for contender in contenders if contender.ours):
        tell(f"tasks: {case.name}, --joins {joins}")
        answer = run_engine("joins.tasks", "", replace(job, mode=joins), TIMEOUT)
        if isinstance(answer, Answer):
            found[joins] = {name: answer.extra[name] for name in TASKS}
        else:
            tell(f"tasks: {answer}")
    return found


def middle(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """One line of those of several rounds: medians of what was timed, the most that was kept; an answer is the same if
    it always was. Of rounds without an answer the first one says why."""
    answered = [line for line in lines if line["seconds"] is not None]
    if not answered or len(lines) == 1:
        return lines[0]
    medians = {name: _median([line[name] for line in answered]) for name in TIMED}
    kept = [line["state_bytes"] for line in answered if line["state_bytes"] is not None]
    missing = [f"no answer in a round: {line['note']}" for line in lines if line["seconds"] is None][:1]
    return {
        **answered[0],
        **medians,
        "state_bytes": max(kept, default=None),
        "same_answer": all(line["same_answer"] for line in answered),
        "note": "; ".join([answered[0]["note"], *missing]),
        "seconds_of_rounds": [line["seconds"] for line in answered],
    }


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 4) if known else None


def _told(line: dict[str, Any]) -> str:
    same = "same answer" if line["same_answer"] else "NOT the same answer"
    return f"{line['rows']:,} records in {line['seconds']:.2f} s warm, all in {line['seconds_cold']:.1f} s cold; {same}"


def _job(files: tuple[Path, Path], case: JoinCase, movement: Movement, slides: int, work: Path) -> JoinJob:
    rows = movement.rows(case, slides)
    left, right = (str(prefix(file, rows, work)) for file in files)
    batch = -(-rows // BATCHES // case.group_rows) * case.group_rows  # whole row groups
    return JoinJob(
        left, right, rows, str(work), machine.cores(), 0.0,
        range_seconds=RANGE, slide_seconds=movement.slide_seconds, batch_rows=batch,
    )  # fmt: skip


def _own(contender: JoinContender, job: JoinJob) -> JoinJob:
    """The job with the files that the engine reads."""
    work = Path(job.work)
    if contender.form == PARTS:
        size = max(1, -(-job.rows // PART_FILES))
        left, right = (str(parts(Path(file), job.rows, size, work, GAP)) for file in (job.left, job.right))
    elif contender.form == TEXTS:
        left, right = (
            str(texts(Path(file), job.rows, job.threads, work, dealt=True)) for file in (job.left, job.right)
        )
    else:
        left, right = job.left, job.right
    return replace(job, mode=contender.mode, left=left, right=right)


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
