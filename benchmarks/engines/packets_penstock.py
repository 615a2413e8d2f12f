"""penstock on a capture. The job's mode says how much of it runs, each on what the one before does:

| mode | runs |
| --- | --- |
| `decode` | the source alone, in this process: the columns of the dozen queries as Arrow batches |
| `tasks` | what Spark's tasks do, in this process: decode, all tables, a segment a batch; no windows are closed |
| `run` | the whole app, results in Parquet files |
| `whole` | what nfdump answers of the dozen, as it does: of the whole capture, not by window |

`run` and `whole` run on Spark, or with `process` behind them without it. The first two run twice in one process; the
second time is the warm one. It includes opening the file, which is read through once to count its packets and to find
where they begin. Of a run, warm are all micro-batches but the first; the file has been opened by then.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from benchmarks.engines.penstock import _version, warm_part
from benchmarks.measure.cpu import own_seconds, session_seconds
from benchmarks.measure.job import Answer, PacketJob, elapsed, serve_packets, timed
from benchmarks.packets.queries import QUERIES, PacketQuery, app_text, whole_text
from benchmarks.packets.reference import digest_answer

NAME = "packets"


def run(job: PacketJob) -> Answer:
    what, _, how = job.mode.partition(" ")
    if what == "run":
        return _run(job, app_text(job.file), how, [(query, True) for query in QUERIES])
    if what == "whole":
        return _run(job, whole_text(job.file), how, [(q, False) for q in QUERIES])
    return _twice(job, _decode if what == "decode" else partial(_tasks, how or "auto"))


def _twice(job: PacketJob, action: Callable[[PacketJob], tuple[int, dict[str, Any]]]) -> Answer:
    action(job)
    cold = elapsed(job)
    before = own_seconds()
    opening, _ = timed(lambda: _open_anew(job))
    opened = own_seconds()
    seconds, (rows, told) = timed(lambda: action(job))
    extra = {"open_seconds": opening, "open_cpu_seconds": opened - before, **told}
    return Answer(_version(), opening + seconds, rows, cold, extra=extra, cpu_seconds=own_seconds() - before)


def _open_anew(job: PacketJob) -> None:
    """Count the packets again, although this process knows the file."""
    from penstock.sources.capture import source as pcap

    pcap._counted.cache_clear()
    pcap.open_pcap(job.file, {}).rows()


def _decode(job: PacketJob) -> tuple[int, dict[str, Any]]:
    from penstock.runtime.batch.job import columns
    from penstock.runtime.settings import TaskSettings
    from penstock.sources.base import whole
    from penstock.sources.registry import open_source

    _, plan = _plan(job, "none")
    source = open_source(f"pcap:{job.file}", {})
    read = source.read(whole(source), columns(plan), TaskSettings().chunk_rows)
    return sum(batch.num_rows for batch in read), {}


def _tasks(kind: str, job: PacketJob) -> tuple[int, dict[str, Any]]:
    """With what the tables did: hash operations, and nanoseconds a packet in tables alone and in all of the task.

    Plans are made again between batches, as in a run.
    """
    import penstock
    from penstock.runtime import work
    from penstock.runtime.batch.job import columns
    from penstock.runtime.epoch import Epoch
    from penstock.runtime.planning.replan import Planner
    from penstock.runtime.settings import TaskSettings
    from penstock.runtime.task import sampling
    from penstock.runtime.task.task import run_task
    from penstock.sharing.options import Planning
    from penstock.sources.base import START, Split
    from penstock.state.protocol import Work
    from penstock.state.versions import first_version

    app = penstock.App().sql(app_text(job.file))
    queries, planner = app.query_set(), Planner(Planning(kind))
    source = app.inputs(queries).sources[NAME]
    planner.look(queries, {NAME: source}, job.batch_rows, job.threads)
    version = first_version(queries, lambda since: planner.plans(queries), {}, planner.planning)
    settings, at, number = TaskSettings(), START, 0
    done: Work = {}
    place, spent = Path(job.work), 0.0
    segments = place / "segments"
    segments.mkdir()
    while at < source.rows():
        plan, stop = version.plans[NAME], source.cut(at, job.batch_rows)
        batches = source.read(Split(at, stop), columns(plan), settings.chunk_rows)
        path, sample = segments / f"{number:04d}.seg", sampling.path_of(place, NAME) if planner.sampling else None
        task = run_task(plan, settings, Epoch(number, row=at), batches, path, sample=sample)
        done, spent = work.added(done, [plan], [task]), spent + task.lfta_seconds
        at, number = stop, number + 1
        version = planner.next(place, version, [task]) or version
    shutil.rmtree(segments)
    return at, {
        "plan": version.plans[NAME].configuration,
        "plans": version.number + 1,
        "hash_operations": work.totals(done)["hash_operations"],
        "naive_hash_operations": len(QUERIES) * at,
        "tables_ns_per_packet": round(sum(counts["nanoseconds"] for counts in done.values()) / at, 1),
        "lfta_ns_per_packet": round(1e9 * spent / at, 1),
    }


def _plan(job: PacketJob, kind: str) -> tuple[Any, Any]:
    """The opened source, and the plan of the app."""
    import penstock

    app = penstock.App().sql(app_text(job.file))
    plans = app.plans(plan=kind, batch_rows=job.batch_rows, parallelism=job.threads)
    return app.inputs(app.query_set()).sources[NAME], plans[0]


def _run(job: PacketJob, text: str, how: str, queries: Sequence[tuple[PacketQuery, bool]]) -> Answer:
    """`queries` whose results are compared, each by window or not."""
    import penstock

    app = penstock.App(master=how or f"local[{job.threads}]").sql(text)
    used: list[float] = []
    started = app.start(
        checkpoint=f"{job.work}/checkpoint",
        output=f"{job.work}/out",
        parallelism=job.threads,
        batch_rows=job.batch_rows,
        listener=lambda report, manifest: used.append(session_seconds()),
    )
    started.await_end()
    cold = elapsed(job)
    summary: dict[str, Any] = started.summary()
    seconds, rows, note = warm_part(summary)
    app.close()
    warm = used[-1] - used[0] if len(used) > 1 else used[-1]
    digests = tuple(_digest(job, query, by_window) for query, by_window in queries)
    extra: dict[str, Any] = {
        name: summary[name] for name in ("seconds", "work", "accounting", "plan") if name in summary
    }
    return Answer(_version(), seconds, rows, cold, digests, note, extra, warm)


def _digest(job: PacketJob, query: PacketQuery, by_window: bool) -> str:
    result: Any = ds.dataset(sorted(str(path) for path in Path(job.work, "out", query.name).glob("*.parquet")))
    table = result.to_table()
    if not table.num_columns:
        return "0:0000000000000000"
    windows = table["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    keys = [table[name] for name in query.names]
    return digest_answer(keys, np.asarray(windows) * by_window, table["packets"], table["bytes"])


if __name__ == "__main__":
    serve_packets(run)
