"""The benchmark `planning`: how long a plan for 6 to 300 queries takes, by chooser.

    a sample ──► Known, nothing counted ──► plan_stream: cold
                 the same, all counted  ──► plan_stream: again
    a batch through a task ──► its sample and counters ──► Planner.next: re-planning, as between two micro-batches

Queries are pairs, then triples, of the 13 attributes of generated packets of flows, on which sharing pays.  Figures are
medians of processor time of this thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.comparisons.peers import named
from benchmarks.measure import machine
from penstock.errors import ConfigError
from penstock.sharing.options import AUTO, NONE, PLANS, Planning
from penstock.sources.generate.source import FLOW_ATTRIBUTES

if TYPE_CHECKING:
    from penstock.state.protocol import TaskReport

Progress = Callable[[str], None]

KEYS = (*combinations(FLOW_ATTRIBUTES, 2), *combinations(FLOW_ATTRIBUTES, 3))
COUNTS, QUICK_COUNTS = (6, 20, 78, 300), (6, 20)
ROWS, QUICK_ROWS = 500_000, 50_000
TIMES, QUICK_TIMES = 7, 1
ENOUGH = 20.0  # seconds: what takes longer is not done as often
STREAM = "packets"


class Chooser(NamedTuple):
    """A value of --plan."""

    name: str


CHOOSERS = tuple(Chooser(name) for name in PLANS if name != NONE)


@dataclass(frozen=True)
class PlanningCase:
    """Some queries on a stream, with a first sample, and the counters and sample of a batch that has run."""

    app: Any  # QuerySet
    survey: Any
    rows: float
    task: TaskReport
    place: Path  # where the task left its sample


def run(
    *,
    work: Path,
    rows: int = ROWS,
    quick: bool = False,
    engines: list[str] | None = None,
    progress: Progress | None = None,
    queries: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the figures as JSON data; `engines` are values of --plan."""
    tell = progress or (lambda text: None)
    rows = min(rows, QUICK_ROWS) if quick else rows
    choosers, results = named(CHOOSERS, engines), []
    for count in _checked(queries or (QUICK_COUNTS if quick else COUNTS)):
        with TemporaryDirectory(prefix="planning-", dir=_folder(work)) as folder:
            tell(f"{count} queries: a batch of {rows:,} records")
            case = arrange(count, rows, Path(folder))
            lines = []
            for chooser in choosers:
                tell(f"{count} queries: {chooser.name}")
                line = {"engine": chooser.name, "work": f"{count} queries", "queries": count, "same_answer": None}
                lines.append(line | measure(case, chooser.name, QUICK_TIMES if quick else TIMES))
            results += with_ratios(lines)
    return {"name": "planning", "machine": machine.describe(), "rows": rows, "results": results}


def _checked(counts: Sequence[int]) -> Sequence[int]:
    for count in counts:
        if not 2 <= count <= len(KEYS):
            raise ConfigError(f"there is no plan for {count} queries", f"from 2 to {len(KEYS)} can be planned for")
    return counts


def _folder(work: Path) -> Path:
    work.mkdir(parents=True, exist_ok=True)
    return work


def arrange(count: int, rows: int, place: Path) -> PlanningCase:
    """The first `count` queries, sampled, and one task over all records."""
    import penstock
    from penstock.runtime.batch.job import columns
    from penstock.runtime.epoch import Epoch
    from penstock.runtime.planning.replan import sample_source
    from penstock.runtime.settings import TaskSettings
    from penstock.runtime.task import sampling
    from penstock.runtime.task.task import run_task
    from penstock.sharing.plan import unshared_plan
    from penstock.sources.base import whole

    app = penstock.App().stream(STREAM, "generate:clustered", options={"rows": str(rows)}, delay="1 second")
    for number, keys in enumerate(KEYS[:count]):
        names = ", ".join(keys)
        select = (
            f"SELECT {names}, count(*) AS n, sum(bytes) AS total FROM {STREAM} [RANGE '5 minutes'] GROUP BY {names}"
        )
        app.query(f"q{number}", select, sink="discard:")
    queries, settings = app.query_set(), TaskSettings()
    source = app.inputs(queries).sources[STREAM]
    plan = unshared_plan(queries, STREAM)
    batches = source.read(whole(source), columns(plan), settings.chunk_rows)
    task = run_task(plan, settings, Epoch(0), batches, place / "0.seg", sample=sampling.path_of(place, STREAM))
    return PlanningCase(queries, sample_source(queries, STREAM, source, rows), float(rows), task, place)


def measure(case: PlanningCase, chooser: str, times: int) -> dict[str, Any]:
    """Seconds by this chooser, the number of tables it plans and its cost of a record; a note if it refuses."""
    from penstock.relations.storing import stored
    from penstock.runtime.planning.replan import Planner
    from penstock.runtime.profile.calibrate import calibrated
    from penstock.runtime.profile.statistics import Known
    from penstock.runtime.profile.survey import Survey
    from penstock.sharing.graph.lattice import lattice
    from penstock.sharing.planner import plan_stream
    from penstock.state.versions import first_version

    planning, kept, costs = Planning(chooser), stored(case.app, STREAM), calibrated()
    memory, net = Planner(planning).memory, lattice(kept.relations)

    def unknown() -> Known:
        return Known(net, Survey(case.survey.layout, case.survey.words), case.rows)

    def plan(known: Known) -> Any:
        return plan_stream(case.app.stream(STREAM), kept, planning, known, costs, memory)

    try:
        known = unknown()
        made = plan(known)  # also fills `known`, and loads what is loaded at first use
    except ConfigError as error:
        return {"seconds": None, "note": f"refused: {error.fact}"}
    version = first_version(case.app, lambda since: {STREAM: made}, {}, planning)
    return {
        "seconds": _median([partial(plan, unknown()) for _ in range(times)]),
        "seconds_again": _median([partial(plan, known)] * times),
        "seconds_replan": _median(
            [partial(Planner(planning).next, case.place, version, [case.task]) for _ in range(times)]
        ),
        "tables": len(made.tables),
        "cost_ns": round(made.basis.cost, 2),
        "plan": made.configuration,
        "note": "",
    }


def _median(actions: Sequence[Callable[[], Any]]) -> float:
    """Of the processor seconds of each, as far as there is time."""
    found: list[float] = []
    for action in actions:
        began = time.thread_time()
        action()
        found.append(time.thread_time() - began)
        if sum(found) > ENOUGH:
            break
    return round(median(found), 5)


def with_ratios(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times as long as what penstock does by itself, `auto`; None where one has no figure."""
    ours = next((line["seconds"] for line in lines if line["engine"] == AUTO), None)
    for line in lines:
        line["ratio_to_penstock"] = round(line["seconds"] / ours, 3) if ours and line["seconds"] else None
    return lines
