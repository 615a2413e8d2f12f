"""Spark batch: a query for each question over a cached table, as many at a time as there are threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.engines import session
from benchmarks.engines.monitoring.questions import CLOSED, COLUMNS, OPENED, Question, asked
from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key


def run(job: EngineJob) -> Answer:
    spark = session.start(job)
    try:
        _execute(spark, job)
        cold = elapsed(job)
        warm, cpu, _ = spent(lambda: _execute(spark, job))
        digests: tuple[str, ...] = ()
        if job.sink == PARQUET:
            digests = tuple(
                str(digest_files(sorted(Path(_place(job, one)).glob("*.parquet")), one.columns)) for one in asked(job)
            )
        return Answer(spark.version, warm, job.rows, cold, digests, cpu_seconds=cpu)
    finally:
        spark.stop()


def _place(job: EngineJob, question: Question) -> str:
    return f"{job.work}/{question.name}"


def _execute(spark: Any, job: EngineJob) -> None:
    packets = spark.read.parquet(job.file).select(*COLUMNS).cache()
    packets.createOrReplaceTempView("packets")

    def answer(question: Question) -> None:
        session.write(spark.sql(query_of(question)), job, _place(job, question))

    with ThreadPoolExecutor(job.threads) as pool:
        list(pool.map(answer, asked(job)))
    packets.unpersist(blocking=True)


def query_of(question: Question) -> str:
    parts = [(session.cut(part) if isinstance(part, Key) else part, name) for part, name in question.parts()]
    names = ", ".join(question.names)
    keys = ", ".join(f"{text} AS {name}" for text, name in parts)
    sums = "count(*) AS packets, sum(bytes) AS total"
    if question.flows:
        sums += f", min(ts) AS first, max(ts) AS last, count(*) FILTER (WHERE {OPENED}) AS opened"
        sums += f", count(*) FILTER (WHERE {CLOSED}) AS closed"
    by = ", ".join(str(place + 1) for place in range(len(parts) + 1))
    where = f" WHERE {question.where}" if question.where else ""
    query = f"SELECT {keys}, unix_micros(ts) div {question.pane} AS w, {sums} FROM packets{where} GROUP BY {by}"
    if question.panes > 1:
        panes = f"SELECT {names}, explode(sequence(w - {question.panes - 1}, w)) AS w, packets, total FROM ({query})"
        query = f"SELECT {names}, w, sum(packets) AS packets, sum(total) AS total FROM ({panes}) GROUP BY {by}"
    if question.having:
        query = f"SELECT * FROM ({query}) WHERE packets >= {question.having}"
    if question.top:
        order = f"row_number() OVER (PARTITION BY w ORDER BY total DESC, {names}) AS place"
        query = f"SELECT * FROM (SELECT *, {order} FROM ({query})) WHERE place <= {question.top}"
    return f"SELECT *, w * {question.pane} AS window_start FROM ({query})"


if __name__ == "__main__":
    serve(run)
