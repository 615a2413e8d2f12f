"""Polars in process: all aggregations as lazy frames over one scan, or (`rolled_up`) one aggregate by the finest keys
and all others from it; collected together or sunk to Parquet files. Rungs of a ladder that feed others are collected
one after the other: Polars does not share what it computes between frames that are sunk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.measure.cpu import spent
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key, Rung, ladder

ROLLED_UP = "rolled_up"


def run(job: EngineJob) -> Answer:
    os.environ["POLARS_MAX_THREADS"] = str(job.threads)  # read when polars is imported
    import polars

    from benchmarks.measure.digest import counted, digest_files

    def execute() -> list[Any]:
        frames = _rolled_up(polars, job) if job.mode == ROLLED_UP else _frames(polars, job)
        if job.sink == PARQUET:
            frames = [frame.sink_parquet(_place(job, number), lazy=True) for number, frame in enumerate(frames)]
        collected: list[Any] = polars.collect_all(frames, engine="auto")
        return collected

    execute()
    cold = elapsed(job)
    warm, cpu, results = spent(execute)
    if job.sink == PARQUET:
        rest = ["window_start", "n", "total"]
        digests = [
            digest_files([_place(job, number)], [*job.names(number), *rest]) for number in range(len(job.queries))
        ]
        found = tuple(map(str, digests))
    else:
        found = tuple(counted(frame.height) for frame in results)
    return Answer(polars.__version__, warm, job.rows, cold, found, cpu_seconds=cpu)


def _place(job: EngineJob, number: int) -> Path:
    return Path(job.work) / f"out-{number}.parquet"


def _flows(polars: Any, job: EngineJob, keys: tuple[Key, ...]) -> Any:
    """The scan, with these keys."""
    window = polars.col(job.time).dt.epoch("us") // job.window * job.window
    columns = [cut(polars, key.column, key, key.below) for key in keys]
    return polars.scan_parquet(job.file).select(
        *columns, polars.col(job.value).cast(polars.Int64), window.alias("window_start")
    )


def cut(polars: Any, source: str, key: Key, bits: int) -> Any:
    """A key from a column that has so many bits more."""
    column = polars.col(source)
    if bits:
        column = (column // 2**bits).cast({8: polars.UInt8, 16: polars.UInt16, 32: polars.UInt32}[key.size])
    return column.alias(key.name)


def _frames(polars: Any, job: EngineJob) -> list[Any]:
    flows = _flows(polars, job, job.keys)
    return [
        flows.group_by(*job.names(number), "window_start").agg(*_aggregates(polars, job))
        for number in range(len(job.queries))
    ]


def _aggregates(polars: Any, job: EngineJob) -> tuple[Any, Any]:
    return polars.len().alias("n"), polars.col(job.value).sum().alias("total")


def _rolled_up(polars: Any, job: EngineJob) -> list[Any]:
    """Frames in the order of the queries; those that feed others are collected."""
    rungs, made, answers = ladder(job.queries), list[Any](), dict[int, Any]()
    feeding = {rung.parent for rung in rungs}
    for place, rung in enumerate(rungs):
        frame = _rung(polars, job, rung, rungs, made)
        made.append(frame.collect().lazy() if place in feeding else frame)
        if rung.query is not None:
            answers[rung.query] = made[-1]
    return [answers[number] for number in range(len(job.queries))]


def _rung(polars: Any, job: EngineJob, rung: Rung, rungs: list[Rung], made: list[Any]) -> Any:
    names = [key.name for key in rung.keys]
    if rung.parent is None:
        flows = _flows(polars, job, rung.keys)
        return flows.group_by(*names, "window_start").agg(*_aggregates(polars, job))
    finer = [next(one for one in rungs[rung.parent].keys if one.feeds(key)) for key in rung.keys]
    columns = [cut(polars, one.name, key, one.cut(key)) for one, key in zip(finer, rung.keys, strict=True)]
    source = made[rung.parent].select(*columns, "window_start", "n", "total")
    return source.group_by(*names, "window_start").agg(polars.col("n").sum(), polars.col("total").sum())


if __name__ == "__main__":
    serve(run)
