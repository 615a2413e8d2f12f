"""Where penstock's time goes: what its tasks do, in this process and one after the other, by part.

| part | what | where |
| --- | --- | --- |
| decode | the source: Arrow batches of the columns that are read | `sources` |
| ingest | columns as numbers, times judged, records chosen, components, ranges | `runtime.task.columns`, `selection` |
| layout | bit fields for the components, new layouts where they no longer fit | `relations.layout` |
| pack | components into words | `runtime.tables.chunk` |
| tables, leaves | probing and folding, of records and of what tables evict | `runtime.tables.forest`, `leaf` |
| other | what a task does besides, and what a forest does around its tables | `runtime.task.task` |
| flush | what is left in tables when the task ends, down into the leaves | `runtime.tables.forest` |
| segment | groups back as columns, written | `state.segments.write` |
| merge | segments of closed windows read and merged | `runtime.merge.merge` |
| roll up | groups of queries made of what was merged | `runtime.merge.closer` |
| finish | select lists and windows of results | `runtime.merge.results.finish` |
| sink | results to Parquet files, or to nobody | `sinks` |

All is processor time of this process.  The whole is done `TURNS` times plain and as often watched, in turn, after a
first time that does not count; shown are the parts of the watched run that took least, and what the least plain one
took.  There is no Spark and no driver here: `benchmarks.engines.penstock` has those.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.engines.penstock import STREAM, _version, opened, plan_of
from benchmarks.measure.blocks import Blocks, watched
from benchmarks.measure.job import Answer, EngineJob, elapsed, serve

if TYPE_CHECKING:
    from penstock.runtime.merge.items import Reading, Wanting
    from penstock.sharing.plan import SharedPlan
    from penstock.state.protocol import SegmentRef, TaskReport

TURNS = 2
TAKE, TASK, END, CLOSE = "take", "task", "end", "close"  # blocks that are no parts by themselves
PLACES = {
    "penstock.runtime.task.task:Task._choose": "ingest",
    "penstock.runtime.task.task:Task._fit": "layout",
    "penstock.runtime.task.keys:Keys.pack": "pack",
    "penstock.runtime.tables.forest:Forest.take": TAKE,
    "penstock.runtime.tables.forest:Forest.drain": "flush",
    "penstock.runtime.task.task:Task._write_run": "segment",
    "penstock.runtime.merge.item:merge_windows": "merge",
    "penstock.runtime.merge.item:closed_groups": "roll up",
    "penstock.runtime.merge.item:finish": "finish",
    "penstock.sinks.folder:FolderSink.stage": "sink",
    "penstock.sinks.discard:DiscardSink.stage": "sink",
}
PARTS = (
    "decode", "ingest", "layout", "pack", "tables", "leaves", "other", "flush", "segment",
    "merge", "roll up", "finish", "sink",
)  # fmt: skip


def run(job: EngineJob) -> Answer:
    _once(job, False)
    cold, plain, found = elapsed(job), list[float](), list[tuple[dict[str, float], dict[str, Any]]]()
    for _ in range(TURNS):
        plain.append(sum(_once(job, False)[0].values()))
        found.append(_once(job, True))
    seconds, told = min(found, key=lambda one: sum(one[0].values()))
    told["plain_ns_per_record"] = round(1e9 * min(plain) / told["records"], 1)
    return Answer(_version(), sum(seconds.values()), job.rows, cold, extra={**told, "parts": _shown(seconds, told)})


def _shown(seconds: dict[str, float], told: dict[str, Any]) -> list[dict[str, Any]]:
    """Nanoseconds a record; of what is done to groups, also nanoseconds a group."""
    groups = {"segment": told["partial_groups"], "merge": told["partial_groups"]}
    groups |= dict.fromkeys(("roll up", "finish", "sink"), told["groups"])
    return [
        {
            "part": part,
            "ns_per_record": round(1e9 * spent / told["records"], 1),
            "ns_per_group": round(1e9 * spent / groups[part], 1) if groups.get(part) else None,
        }
        for part, spent in seconds.items()
    ]


def _once(job: EngineJob, parts: bool) -> tuple[dict[str, float], dict[str, Any]]:
    """Processor seconds by part, or of tasks and merging as wholes; and what was done."""
    place, blocks = Path(job.work) / "parts", Blocks()
    (place / "segments").mkdir(parents=True)
    try:
        with watched(blocks, PLACES) if parts else nullcontext():
            plan, tasks, probing = _tasks(job, place, blocks)
            results = _merged(job, place, plan, tuple(task.segment for task in tasks), blocks)
        partial = sum(counts.get("groups", 0) for task in tasks for counts in task.work.values())
        told = {"records": job.rows, "partial_groups": partial, "groups": results, "plan": plan.configuration}
        return (_by_part(blocks.seconds, *probing) if parts else blocks.seconds), told
    finally:
        shutil.rmtree(place)


def _by_part(seconds: dict[str, float], tables: float, leaves: float) -> dict[str, float]:
    """Blocks as parts, which add up to the same. `tables` and `leaves` are what the forest itself has counted."""
    took = seconds.get(TAKE, 0.0)
    share = min(1.0, took / max(1e-12, tables + leaves))  # its own clock is another one
    found = dict.fromkeys(PARTS, 0.0) | {name: spent for name, spent in seconds.items() if name in PARTS}
    found |= {"tables": share * tables, "leaves": share * leaves}
    found["other"] = took - share * (tables + leaves) + seconds.get(TASK, 0.0)
    found["segment"] += seconds.get(END, 0.0)
    found["merge"] += seconds.get(CLOSE, 0.0)  # opening segments, accounts of windows
    return found


def _tasks(job: EngineJob, place: Path, blocks: Blocks) -> tuple[SharedPlan, list[TaskReport], tuple[float, float]]:
    """All records through tasks as large as those of a micro-batch, by the plan that is made first; with the seconds
    that records took in tables and leaves."""
    from penstock.runtime.batch.job import columns
    from penstock.runtime.epoch import Epoch
    from penstock.runtime.settings import TaskSettings
    from penstock.runtime.task.gathering import gathered
    from penstock.runtime.task.task import Task, task_report
    from penstock.sources.base import START, Split
    from penstock.state.segments.write import SegmentWriter

    app, settings = opened(job), TaskSettings()
    queries = app.query_set()
    source = app.inputs(queries).sources[STREAM]
    plan = app.plans(plan=plan_of(job.mode), batch_rows=job.batch_rows, parallelism=job.threads)[0]
    reports: list[TaskReport] = []
    tables, leaves, at = 0.0, 0.0, START
    while at < job.rows:
        stop = source.cut(at, max(1, job.batch_rows // job.threads))
        path = place / "segments" / f"{len(reports):04d}.seg"
        with blocks.block(TASK):
            task = Task(plan, settings, Epoch(len(reports), row=at), SegmentWriter(path, settings.slots))
            read = source.read(Split(at, stop), columns(plan), settings.chunk_rows)
            for batch in blocks.items("decode", gathered(read, settings.chunk_rows)):
                task.take(batch)
        tables, leaves = (one + more for one, more in zip((tables, leaves), _probing(task), strict=True))
        with blocks.block(END):
            task.end()
            reports.append(task_report(task))
        at = stop
    return plan, reports, (tables, leaves)


def _probing(task: Any) -> tuple[float, float]:
    """Seconds in tables and in leaves so far."""
    from penstock.runtime.work import TABLE

    work = [(name.startswith(TABLE), counts["nanoseconds"] / 1e9) for name, counts in task.forest.work().items()]
    return sum(spent for table, spent in work if table), sum(spent for table, spent in work if not table)


def _merged(job: EngineJob, place: Path, plan: SharedPlan, segments: tuple[SegmentRef, ...], blocks: Blocks) -> int:
    """Close all windows; returns the number of result rows."""
    from penstock.runtime.batch.merge_job import Closed, How, ShareWork, merge_share
    from penstock.runtime.epoch import Epoch
    from penstock.runtime.merge.all_items import items
    from penstock.runtime.merge.due import due
    from penstock.runtime.merge.items import FOREVER
    from penstock.runtime.merge.results.tally import least_kept
    from penstock.runtime.sent import Sent
    from penstock.runtime.settings import TaskSettings
    from penstock.sinks.base import Owner
    from penstock.sinks.schema import open_query_sink
    from penstock.state.segments.read import Segment

    settings, folder = TaskSettings(), place / "segments"
    dues, closed = [], dict[str, Closed]()
    opened_segments = [Segment(folder / one.path, one) for one in segments]
    for reading, wanting in _read_together(job, plan):
        stored_blocks = [block for one in opened_segments for name in reading.relations for block in one.of(name)]
        dues.append(due(reading, tuple(wanting), stored_blocks, -FOREVER, FOREVER, None))
        hows, least = dict[str, How](), least_kept(dues[-1].windows)
        for one in wanting:
            sink = open_query_sink(one.query, None, str(place / "results"), place)
            sink.prepare(Owner("bench", str(place)), overwrite=True)
            hows[one.query.name] = How(reading, one, sink)
        together = Sent[Mapping[str, How]](hows)
        closed |= {name: Closed(name, together, None, Epoch(0), least) for name in hows}
    work = ShareWork(closed, str(folder), segments, settings, 0)
    with blocks.block(CLOSE):
        report = merge_share([items(dues, settings, job.threads)], work, 0)
    return sum(report.rows.values())


def _read_together(job: EngineJob, plan: SharedPlan) -> Iterable[tuple[Reading, list[Wanting]]]:
    """The queries by what is read for them: once for all that read the same, as in a run."""
    from penstock.relations.relation import wanted_of
    from penstock.relations.storage import StoredSource
    from penstock.runtime.merge.items import Reading, wanting_of

    found: dict[Reading, list[Wanting]] = {}
    for query, reader in zip(opened(job).query_set().queries, plan.stored.readers, strict=True):
        read = [(StoredSource(plan.stored.of[one.relation]),) for one in (reader.closing, *reader.details)]
        wanting = wanting_of(query, wanted_of(query), read)
        found.setdefault(Reading(query.window, wanting.sources, STREAM, job.time), []).append(wanting)
    return found.items()


if __name__ == "__main__":
    serve(run)
