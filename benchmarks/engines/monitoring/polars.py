"""Polars in process: a lazy frame for each question over one scan, collected together. Windows that slide are put
together from their panes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.engines.monitoring.questions import CLOSED, COLUMNS, OPENED, Question, asked
from benchmarks.engines.polars import cut
from benchmarks.measure.cpu import spent
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key


def run(job: EngineJob) -> Answer:
    os.environ["POLARS_MAX_THREADS"] = str(job.threads)  # read when polars is imported
    import polars

    from benchmarks.measure.digest import counted, digest_files

    def execute() -> list[Any]:
        packets = polars.scan_parquet(job.file).select(COLUMNS)
        frames = [frame_of(polars, packets, question) for question in asked(job)]
        if job.sink == PARQUET:
            pairs = zip(frames, asked(job), strict=True)
            frames = [frame.sink_parquet(_place(job, question), lazy=True) for frame, question in pairs]
        collected: list[Any] = polars.collect_all(frames)
        return collected

    execute()
    cold = elapsed(job)
    warm, cpu, results = spent(execute)
    if job.sink == PARQUET:
        found = tuple(str(digest_files([_place(job, one)], one.columns)) for one in asked(job))
    else:
        found = tuple(counted(frame.height) for frame in results)
    return Answer(polars.__version__, warm, job.rows, cold, found, cpu_seconds=cpu)


def _place(job: EngineJob, question: Question) -> Path:
    return Path(job.work) / f"{question.name}.parquet"


def frame_of(polars: Any, packets: Any, question: Question) -> Any:
    col, sql = polars.col, polars.sql_expr
    chosen = packets.filter(sql(question.where)) if question.where else packets
    keys = [
        (cut(polars, part.column, part, part.below) if isinstance(part, Key) else _expression(polars, part)).alias(name)
        for part, name in question.parts()
    ]
    pane = col("ts").dt.epoch("us") // question.pane * question.pane
    sums = [polars.len().cast(polars.Int64).alias("packets"), col("bytes").cast(polars.Int64).sum().alias("total")]
    if question.flows:
        sums += [col("ts").min().alias("first"), col("ts").max().alias("last")]
        sums += [sql(OPENED).sum().alias("opened"), sql(CLOSED).sum().alias("closed")]
    names = [*question.names, "window_start"]
    groups = chosen.group_by(*keys, pane.alias("window_start")).agg(*sums)
    if question.panes > 1:
        moved = [groups.with_columns(col("window_start") - k * question.pane) for k in range(question.panes)]
        groups = polars.concat(moved).group_by(names).agg(col("packets").sum(), col("total").sum())
    if question.having:
        groups = groups.filter(col("packets") >= question.having)
    if question.top:
        ordered = groups.sort("total", *question.names, descending=[True, *(False for _ in question.names)])
        groups = ordered.group_by("window_start", maintain_order=True).head(question.top)
    return groups


def _expression(polars: Any, text: str) -> Any:
    """Polars' SQL has its own name for the least of several columns."""
    if text == "least(sport, dport)":
        return polars.min_horizontal("sport", "dport")
    return polars.sql_expr(text)


if __name__ == "__main__":
    serve(run)
