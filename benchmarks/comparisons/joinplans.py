"""The benchmark `joinplans`: all plans of a join beside the one that is chosen, on data that each of them is best for.

| case | the streams of a window | should be best |
| --- | --- | --- |
| `both` | many records in few groups, on both sides | EAP11 |
| `first` | the first has few groups, in the second all records differ | EAP10 |
| `second` | the other way round | EAP01 |
| `neither` | all records differ | LAP |

Plans run in turn, in this process and one task at a time, `--repeat` times. Figures are processor time of micro-batches
after the first that closes windows, in nanoseconds a record, the least of all turns: what disturbs only adds. `regret`
is what a run takes against the best plan, `chosen_regret` what the plan takes that it ended with.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.comparisons.peers import named
from benchmarks.measure import machine
from penstock.errors import ConfigError

Progress = Callable[[str], None]

PLANS = {"LAP": "late", "EAP01": "01", "EAP10": "10", "EAP11": "11"}
AUTO = "auto"
ROWS, QUICK_ROWS = 400_000, 20_000  # of a side in a window
WINDOWS, SECONDS = 7, 10
WARM = 2  # micro-batches before those that count
REPEAT, QUICK_REPEAT = 3, 1
START = 1_767_225_600 * 1_000_000  # microseconds
KEYS, GROUPS = 200, 4  # of a side with few groups


@dataclass(frozen=True)
class Showcase:
    """Whether all records of a side differ, for both sides, and the plan that should be best for that."""

    name: str
    different: tuple[bool, bool]
    best: str

    @property
    def what(self) -> str:
        return ", ".join("all records differ" if one else "few groups" for one in self.different)


CASES = (
    Showcase("both", (False, False), "EAP11"),
    Showcase("first", (False, True), "EAP10"),
    Showcase("second", (True, False), "EAP01"),
    Showcase("neither", (True, True), "LAP"),
)


@dataclass(frozen=True)
class Option:
    """A value of --joins."""

    name: str


OPTIONS = tuple(Option(name) for name in (*PLANS, AUTO))


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
    """Return the figures as JSON data; `engines` are names of plans, or auto, `streams` names of cases."""
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    times = repeat or (QUICK_REPEAT if quick else REPEAT)
    results: list[dict[str, Any]] = []
    for case in _cases(streams):
        files = write(case, rows, work)
        found: dict[str, list[Ran]] = {}
        for turn in range(times):
            for option in named(OPTIONS, engines):
                tell(f"{case.name}: {option.name}, turn {turn + 1} of {times}")
                found.setdefault(option.name, []).append(measure(app_text(files), option.name, rows, work))
        results += _lines(case, found, rows)
        for file in files:
            file.unlink()
    return {"name": "joinplans", "machine": machine.describe(), "rows": rows, "results": results}


def _cases(names: Sequence[str] | None) -> list[Showcase]:
    known = [case.name for case in CASES]
    for name in names or ():
        if name not in known:
            raise ConfigError(f"unknown data '{name}'", f"data are {', '.join(known)}")
    return [case for case in CASES if not names or case.name in names]


# -- data


def write(case: Showcase, rows: int, work: Path) -> tuple[Path, Path]:
    """Both streams, of all windows."""
    work.mkdir(parents=True, exist_ok=True)
    left, right = (_stream(work / f"plans-{case.name}-{n}.parquet", rows, case.different, n) for n in range(2))
    return left, right


def _stream(path: Path, rows: int, different: tuple[bool, bool], number: int) -> Path:
    """A side whose records differ has keys of which few are met by the other one, unless those differ as well."""
    rng, many = np.random.default_rng([rows, number]), rows * WINDOWS
    keys, groups = (rows, 50) if different[number] else (KEYS, GROUPS)
    times = START + np.arange(many) * (SECONDS * 1_000_000) // rows
    columns = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "k": pa.array(rng.integers(0, keys, many), pa.int32()),
        "g": pa.array(rng.integers(0, groups, many), pa.int32()),
        "x": pa.array(rng.integers(0, 1000, many), pa.int32()),
    }
    pq.write_table(pa.table(columns), path, row_group_size=max(1000, rows // 8))
    return path


def app_text(files: tuple[Path, Path]) -> str:
    window = f"[RANGE '{SECONDS} seconds']"
    named_files = zip("ab", files, strict=True)
    streams = (f"CREATE STREAM {name} FROM 'parquet:{file}' WATERMARK ts DELAY '0 s';" for name, file in named_files)
    select = "SELECT A.g AS g, B.g AS h, count(*) AS n, sum(A.x) AS t, max(B.x) AS m"
    sides = f"FROM a A {window} JOIN b B {window} ON A.k = B.k"
    return "\n".join([*streams, f"CREATE QUERY j AS {select} {sides} GROUP BY A.g, B.g;"])


# -- runs


@dataclass
class Ran:
    """Processor nanoseconds a record of the micro-batches that count, the plan at the end, and what was expected of
    all plans."""

    spent: list[float] = field(default_factory=list)
    chosen: str = ""
    expected: dict[str, float] = field(default_factory=dict)
    state: int = 0


def measure(text: str, option: str, rows: int, work: Path) -> Ran:
    """One run with a plan."""
    import penstock
    from penstock.sharing.joins.plans import plan_name
    from penstock.sharing.plan import joins_in

    ran, folder = Ran(), Path(mkdtemp(prefix="plans-", dir=work))  # a process remembers what is below a checkpoint
    last = time.process_time_ns()

    def listen(report: Any, manifest: Any) -> None:
        nonlocal last
        now = time.process_time_ns()
        if report.batch >= WARM and report.closed and report.rows:
            ran.spent.append((now - last) / report.rows)
        ran.state = max(ran.state, report.kept)
        last = now

    app = penstock.App(master="process").sql(text)
    started = app.start(
        str(folder / "checkpoint"),
        output=str(folder / "out"),
        batch_rows=2 * rows,
        parallelism=1,
        joins=PLANS.get(option, AUTO),
        listener=listen,
    )
    started.await_end()
    choice = joins_in(started.plans)["j"]
    ran.chosen = plan_name(choice.early)
    ran.expected = {plan_name(one.early): one.cost / (2 * rows) for one in choice.considered}
    shutil.rmtree(folder)
    return ran


def _lines(case: Showcase, found: dict[str, list[Ran]], rows: int) -> list[dict[str, Any]]:
    spent = {name: min(median(ran.spent) for ran in runs) for name, runs in found.items()}
    best = min((cost for name, cost in spent.items() if name != AUTO), default=None)
    return [
        {
            "engine": name,
            "work": f"{case.name}: {case.what}",
            "case": case.name,
            "rows": rows,
            "ns_a_record": round(spent[name], 1),
            "all": [round(median(ran.spent), 1) for ran in runs],
            "expected": round(runs[-1].expected[runs[-1].chosen], 1) if runs[-1].chosen in runs[-1].expected else None,
            "regret": None if best is None else round(spent[name] / best, 3),
            "chosen_regret": round(spent[runs[-1].chosen] / best, 3) if best and runs[-1].chosen in spent else None,
            "chosen": runs[-1].chosen,
            "should_be": case.best,
            "state_bytes": runs[-1].state,
        }
        for name, runs in found.items()
    ]
