"""penstock itself, by its Python interface: one app with all queries, results in Parquet files or discarded.

The job's mode has the plan (`none`, `auto`, …), `process` where there is no Spark, and `ready` where Spark is started
before the run.  Warm are all micro-batches but the first, with the writing of results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engines.monitoring.questions import ADDRESSES, asked
from benchmarks.measure.cpu import session_seconds
from benchmarks.measure.digest import counted, digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import keys_of
from penstock.logical.query import Field
from penstock.sources.base import fields

STREAM = "flows"
PROCESS, READY = "process", "ready"  # a master without Spark; a session before the run


@dataclass
class Watch:
    """What a run tells batch by batch: processor seconds and result rows so far, and nanoseconds of its tasks in tables
    and leaves."""

    used: list[float] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)

    def __call__(self, report: Any, manifest: Any) -> None:
        from penstock.runtime.work import TABLE

        self.used.append(session_seconds())
        self.results.append(sum(one.rows for one in manifest.results.values()))
        work = [(name, counts["nanoseconds"]) for task in report.tasks for name, counts in task.work.items()]
        self.tables.append(sum(spent for name, spent in work if name.startswith(TABLE)))
        self.leaves.append(sum(spent for name, spent in work if not name.startswith(TABLE)))


def run(job: EngineJob) -> Answer:
    app, watch = opened(job), Watch()
    if READY in job.mode.split() and app.with_spark:
        app.session()
    before = session_seconds()
    started = app.start(
        checkpoint=f"{job.work}/checkpoint", plan=plan_of(job.mode), batch_rows=job.batch_rows, listener=watch,
        parallelism=job.threads,
    )  # fmt: skip
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
    extra["figures"] = figures_of(summary, watch)
    warm = _warm(watch.used)
    extra |= {"cpu_seconds_all": watch.used[-1] - before, "cpu_seconds_batches": warm}
    return Answer(_version(), seconds, rows, cold, digests, note, extra, warm)


def opened(job: EngineJob) -> Any:
    """The app of a job."""
    import penstock

    app = penstock.App(master=PROCESS if PROCESS in job.mode.split() else f"local[{job.threads}]")
    # Addresses as the numbers that the peers read, where whole ones are asked, and the watermark of Spark's streaming
    # queries.
    delay: dict[str, Any] = {} if job.delay_seconds is None else {"delay": f"{job.delay_seconds} seconds"}
    app.stream(STREAM, f"parquet:{job.file}", fields=_columns(job), time=job.time, **delay)
    texts = [question.select(STREAM) for question in asked(job)] or [_query(job, keys) for keys in job.queries]
    for number, text in enumerate(texts):
        sink = f"parquet:{job.work}/out-{number}" if job.sink == PARQUET else "discard:"
        app.query(f"q{number}", text, sink=sink)
    return app


def plan_of(mode: str) -> str:
    """The value of `--plan` in a job's mode."""
    return next((word for word in mode.split() if word not in (PROCESS, READY)), "none")


def _columns(job: EngineJob) -> tuple[Field, ...]:
    """The file's columns by their stored types alone, but for addresses of which prefixes are asked."""
    addresses = set(ADDRESSES) if asked(job) else {key.column for key in job.keys if key.length}
    schema = pq.read_schema(job.file)
    return fields(pa.schema([one if one.name in addresses else one.remove_metadata() for one in schema]))


def _query(job: EngineJob, texts: tuple[str, ...]) -> str:
    keys = keys_of(texts)
    select = ", ".join(f"{key.text} AS {key.name}" if key.length else key.name for key in keys)
    window = f"[RANGE '{job.window_seconds} seconds' SLIDE '{job.window_seconds} seconds']"
    by = ", ".join(key.text for key in keys)
    return f"SELECT {select}, count(*) AS n, sum({job.value}) AS total FROM {STREAM} {window} GROUP BY {by}"


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


def figures_of(summary: dict[str, Any], watch: Watch) -> dict[str, float]:
    """What a run did, of all records: hash operations and those without sharing, bytes of segments that tasks wrote and
    that closings and compactions read and wrote, bytes of results; and results a second, warm."""
    records = max(1, sum(batch["rows"] for batch in summary["batches"]))
    work, state = summary["work"], summary["state"]
    warm = watch.results[-1] - (watch.results[0] if len(watch.results) > 1 else 0)
    a_record = {
        "hash_operations": work["hash_operations"],
        "naive_hash_operations": work["naive_hash_operations"],
        "bytes_written": state["written"] + state["compacted"],
        "bytes_read": state["read"],
        "result_bytes": state["results"],
        "results": watch.results[-1],
    }
    return {
        **{f"{name}_per_record": round(count / records, 3) for name, count in a_record.items()},
        "results_per_second": round(warm / max(warm_part(summary)[0], 1e-9)),
    }


def _digest(job: EngineJob, number: int) -> str:
    questions = asked(job)
    names = questions[number].columns if questions else [*job.names(number), "window_start", "n", "total"]
    return str(digest_files(sorted(Path(f"{job.work}/out-{number}").glob("**/*.parquet")), names))


def _version() -> str:
    from importlib.metadata import version

    return version("penstock")


if __name__ == "__main__":
    serve(run)
