"""Where penstock's time goes: what its Spark tasks do, in this process and one after the other, by part.

| part | what | where |
| --- | --- | --- |
| decode | the source: Arrow batches of the columns that are read | `sources` |
| ingest | columns as numbers, times judged, records chosen, components, ranges | `runtime.task.columns`, `selection` |
| layout | bit fields for the components, new layouts where they no longer fit | `relations.layout` |
| pack | components into words | `runtime.tables.chunk` |
| tables, leaves | probing and folding, of records and of what tables evict | `runtime.tables.forest`, `leaf` |
| flush | what is left in tables when the task ends, down into the leaves | `runtime.tables.forest` |
| segment | groups back as columns, written | `state.segments.write` |
| merge | segments of closed windows read and merged | `runtime.merge.merge` |
| finish | select lists and windows of results | `runtime.merge.finish` |
| sink | results to Parquet files, or to nobody | `sinks` |

All is processor time of one thread.  The whole is done twice in one process; the second time counts.  There is no
Spark, so neither its own time nor the driver's is here: `benchmarks.engines.penstock` has that.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.engines.penstock import STREAM, _version, opened
from benchmarks.measure.job import Answer, EngineJob, elapsed, serve
from benchmarks.measure.profiled import Profiled

if TYPE_CHECKING:
    from penstock.state.protocol import SegmentRef, TaskReport

TASK_PARTS = {  # of taking records: module, functions
    "decode": ("engines.penstock_parts", "_decoded"),
    "ingest": ("runtime.task.task", "_choose"),
    "layout": ("runtime.task.task", "_fit"),
    "pack": ("runtime.tables.chunk", "pack_words"),
    "segment": ("runtime.task.task", "_write_run"),  # early, where memory is full
}
FLUSH = ("runtime.task.task", "_drain")
MERGE_PARTS = {
    "merge": ("runtime.merge.windows", "merge_windows"),
    "finish": ("runtime.merge.finish", "finish"),
}


def run(job: EngineJob) -> Answer:
    _once(job)
    cold = elapsed(job)
    seconds, told = _once(job)
    return Answer(_version(), sum(seconds.values()), job.rows, cold, extra={**told, "parts": _shown(seconds, told)})


def _shown(seconds: dict[str, float], told: dict[str, Any]) -> list[dict[str, Any]]:
    """Nanoseconds a record; of what is done to groups, also nanoseconds a group."""
    groups = {"segment": told["partial_groups"], "merge": told["partial_groups"]}
    groups |= {"finish": told["groups"], "sink": told["groups"]}
    return [
        {
            "part": part,
            "ns_per_record": round(1e9 * spent / told["records"], 1),
            "ns_per_group": round(1e9 * spent / groups[part], 1) if groups.get(part) else None,
        }
        for part, spent in seconds.items()
    ]


def _once(job: EngineJob) -> tuple[dict[str, float], dict[str, Any]]:
    place = Path(job.work) / "parts"
    (place / "segments").mkdir(parents=True)
    try:
        plan, tasks, seconds = _tasks(job, place)
        results, merging = _merged(job, place, tuple(task.segment for task in tasks))
        partial = sum(counts.get("groups", 0) for task in tasks for counts in task.work.values())
        told = {"records": job.rows, "partial_groups": partial, "groups": results, "plan": plan}
        return {**seconds, **merging}, told
    finally:
        shutil.rmtree(place)


def _tasks(job: EngineJob, place: Path) -> tuple[str, list[TaskReport], dict[str, float]]:
    """All records through tasks as large as those of a micro-batch, by the plan that is made first."""
    from penstock.runtime.batch.job import columns
    from penstock.runtime.epoch import Epoch
    from penstock.runtime.settings import TaskSettings
    from penstock.runtime.task.task import Task, task_report
    from penstock.runtime.work import TABLE
    from penstock.sources.base import START, Split
    from penstock.state.segments.write import SegmentWriter

    app, settings = opened(job), TaskSettings()
    queries = app.query_set()
    source = app.inputs(queries).sources[STREAM]
    plan = app.plans(plan=job.mode or "auto", batch_rows=job.batch_rows, parallelism=job.threads)[0]
    taking, ending = Profiled(), Profiled()
    reports: list[TaskReport] = []
    tables, leaves, at = 0, 0, START
    while at < job.rows:
        stop = source.cut(at, max(1, job.batch_rows // job.threads))
        path = place / "segments" / f"{len(reports):04d}.seg"
        task = Task(plan, settings, Epoch(len(reports), row=at), SegmentWriter(path, settings.slots))
        batches = source.read(Split(at, stop), columns(plan), settings.chunk_rows)

        def take(task: Any = task, batches: Iterator[pa.RecordBatch] = batches) -> None:
            while (batch := _decoded(batches)) is not None:
                task.take(batch)

        def end(task: Any = task) -> TaskReport:
            task.end()
            return task_report(task)

        taking(take)
        for name, counts in task.forest.work().items():
            if name.startswith(TABLE):
                tables += counts["nanoseconds"]
            else:
                leaves += counts["nanoseconds"]
        reports.append(ending(end))
        at = stop
    seconds = {part: taking.within(*where) for part, where in TASK_PARTS.items()}
    early, flush = seconds.pop("segment"), ending.within(*FLUSH)
    seconds |= {"tables": tables / 1e9, "leaves": leaves / 1e9}
    seconds |= {"other": max(0.0, taking.seconds - early - sum(seconds.values()))}
    seconds |= {"flush": flush, "segment": early + ending.seconds - flush}
    return plan.configuration, reports, seconds


def _decoded(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next(batches, None)


def _merged(job: EngineJob, place: Path, segments: tuple[SegmentRef, ...]) -> tuple[int, dict[str, float]]:
    """Close all windows; returns the number of result rows."""
    from penstock.relations.relation import wanted_of
    from penstock.relations.storage import StoredSource
    from penstock.relations.storing import stored
    from penstock.runtime.batch.merge_job import Closed, How, ShareWork, merge_share
    from penstock.runtime.epoch import Epoch
    from penstock.runtime.merge.all_items import items
    from penstock.runtime.merge.items import FOREVER, Reading, due, wanting_of
    from penstock.runtime.merge.tally import least_kept
    from penstock.runtime.sent import Sent
    from penstock.runtime.settings import TaskSettings
    from penstock.sinks.base import Owner
    from penstock.sinks.schema import open_query_sink
    from penstock.state.segments.read import Segment

    settings, folder, merging = TaskSettings(), place / "segments", Profiled()
    app, dues, closed = opened(job).query_set(), [], {}
    kept = stored(app, STREAM)
    for query, reader in zip(app.queries, kept.readers, strict=True):
        read = [(StoredSource(kept.of[closing.relation]),) for closing in (reader.closing, *reader.details)]
        wanting = wanting_of(query, wanted_of(query), read)
        reading = Reading(query.window, wanting.sources, STREAM, job.time)
        opened_segments = [Segment(folder / one.path, one) for one in segments]
        blocks = [block for one in opened_segments for name in reader.relations for block in one.of(name)]
        dues.append(due(reading, (wanting,), blocks, -FOREVER, FOREVER, None))
        sink = open_query_sink(query, None, str(place / "results"), place)
        sink.prepare(Owner("bench", str(place)), overwrite=True)
        closed[query.name] = Closed(Sent(How(reading, wanting)), sink, None, Epoch(0), least_kept(dues[-1].windows))
    work = ShareWork(closed, str(folder), segments, settings, 0)
    report = merging(lambda: merge_share([items(dues, settings, job.threads)], work, 0))
    seconds = {part: merging.within(*where) for part, where in MERGE_PARTS.items()}
    seconds["sink"] = sum(merging.within(f"sinks.{name}", "stage") for name in ("folder", "discard"))
    seconds["merge"] += max(0.0, merging.seconds - sum(seconds.values()))  # opening segments, accounts of windows
    return sum(report.rows.values()), seconds


if __name__ == "__main__":
    serve(run)
