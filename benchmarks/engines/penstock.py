"""penstock itself, by its Python interface: one app with all queries, results in Parquet files or discarded.

The job's mode is the plan (`none`, `auto`, …).  Warm are all micro-batches but the first, with the writing of results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure.cpu import session_seconds
from benchmarks.measure.digest import counted, digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from penstock.logical.query import Field
from penstock.sources.base import fields

STREAM = "flows"


@dataclass
class Watch:
    """What a run tells batch by batch: processor seconds so far, and nanoseconds of its tasks in tables and leaves."""

    used: list[float] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)

    def __call__(self, report: Any, manifest: Any) -> None:
        from penstock.runtime.work import TABLE

        self.used.append(session_seconds())
        work = [(name, counts["nanoseconds"]) for task in report.tasks for name, counts in task.work.items()]
        self.tables.append(sum(spent for name, spent in work if name.startswith(TABLE)))
        self.leaves.append(sum(spent for name, spent in work if not name.startswith(TABLE)))


def run(job: EngineJob) -> Answer:
    app, watch = opened(job), Watch()
    started = app.start(
        checkpoint=f"{job.work}/checkpoint", plan=job.mode or "none", batch_rows=job.batch_rows, listener=watch
    )
    started.await_end()
    cold = elapsed(job)
    summary: dict[str, Any] = started.summary()
    seconds, rows, note = warm_part(summary)
    app.close()
    if job.sink == PARQUET:
        digests = tuple(_digest(job, number) for number in range(len(job.queries)))
    else:
        digests = tuple(counted(summary["queries"][f"q{n}"]["rows"]) for n in range(len(job.queries)))
    extra: dict[str, Any] = {name: summary[name] for name in ("memory", "work", "seconds") if name in summary}
    extra["plan"] = summary["plan"]["configuration"]
    extra["time"] = time_of(summary, watch)
    return Answer(_version(), seconds, rows, cold, digests, note, extra, _warm(watch.used))


def opened(job: EngineJob) -> Any:
    """The app of a job."""
    import penstock

    app = penstock.App(master=f"local[{job.threads}]")
    # Addresses as the numbers that the peers read, and the watermark of Spark's streaming queries.
    delay: dict[str, Any] = {} if job.delay_seconds is None else {"delay": f"{job.delay_seconds} seconds"}
    app.stream(STREAM, f"parquet:{job.file}", fields=_numbers(job), time=job.time, **delay)
    for number, keys in enumerate(job.queries):
        sink = f"parquet:{job.work}/out-{number}" if job.sink == PARQUET else "discard:"
        app.query(f"q{number}", _query(job, keys), sink=sink)
    return app


def _numbers(job: EngineJob) -> tuple[Field, ...]:
    """The file's columns by their stored types alone."""
    return fields(pa.schema([field.remove_metadata() for field in pq.read_schema(job.file)]))


def _query(job: EngineJob, keys: tuple[str, ...]) -> str:
    names = ", ".join(keys)
    window = f"[RANGE '{job.window_seconds} seconds' SLIDE '{job.window_seconds} seconds']"
    return f"SELECT {names}, count(*) AS n, sum({job.value}) AS total FROM {STREAM} {window} GROUP BY {names}"


def warm_part(summary: dict[str, Any]) -> tuple[float, int, str]:
    """Seconds and rows of all micro-batches after the first; with one batch only, its own."""
    seconds, batches = summary["seconds"]["per_batch"], summary["batches"]
    rows = sum(batch["rows"] for batch in batches[1:])
    if rows:
        return sum(seconds[1:]), rows, ""
    return sum(seconds), sum(batch["rows"] for batch in batches), "one micro-batch only, the cold one"


def _warm(used: list[float]) -> float:
    """Of figures at the end of each batch, what came after the first batch; with one batch only, all."""
    return used[-1] - used[0] if len(used) > 1 else used[-1]


def time_of(summary: dict[str, Any], watch: Watch) -> dict[str, float]:
    """Where the time of a run went, as far as it tells: seconds until the end of the first batch, then nanoseconds a
    record (wall time, but tables and leaves: processor time of all tasks) and a result row."""
    seconds, (_, rows, _) = summary["seconds"], warm_part(summary)
    warm = slice(1, None) if len(seconds["per_batch"]) > 1 else slice(None)
    groups = sum(query["rows"] for query in summary["queries"].values())
    every = sum(batch["rows"] for batch in summary["batches"])
    tasks, merge = (sum(seconds[name][warm]) for name in ("tasks", "merge"))
    return {
        "startup_seconds": round(seconds["startup"], 3),
        "planning_seconds": round(seconds["planning"], 3),
        "first_batch_seconds": round(seconds["per_batch"][0], 3),
        "tasks_ns_per_record": round(1e9 * tasks / rows, 1),
        "merge_ns_per_record": round(1e9 * merge / rows, 1),
        "between_ns_per_record": round(1e9 * (sum(seconds["per_batch"][warm]) - tasks - merge) / rows, 1),
        "tables_cpu_ns_per_record": round(sum(watch.tables[warm]) / rows, 1),
        "leaves_cpu_ns_per_record": round(sum(watch.leaves[warm]) / rows, 1),
        "merge_ns_per_result": round(1e9 * sum(seconds["merge"]) / max(1, groups), 1),
        "results_per_record": round(groups / every, 3),
    }


def _digest(job: EngineJob, number: int) -> str:
    names = [*job.queries[number], "window_start", "n", "total"]
    return str(digest_files(sorted(Path(f"{job.work}/out-{number}").glob("**/*.parquet")), names))


def _version() -> str:
    from importlib.metadata import version

    return version("penstock")


if __name__ == "__main__":
    serve(run)
