"""DuckDB in process: a query for each question, over a table loaded once. Windows that slide are put together from
their panes, and the first of a window come from `row_number`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from benchmarks.engines.duckdb import cut
from benchmarks.engines.monitoring.questions import CLOSED, COLUMNS, OPENED, Question, asked
from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import counted, digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key


def run(job: EngineJob) -> Answer:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {job.threads}")
    connection.execute("SET preserve_insertion_order = false")
    _execute(connection, job)
    cold = elapsed(job)
    warm, cpu, rows = spent(lambda: _execute(connection, job))
    digests = tuple(map(counted, rows))
    if job.sink == PARQUET:
        digests = tuple(str(digest_files([_place(job, one)], one.columns)) for one in asked(job))
    return Answer(duckdb.__version__, warm, job.rows, cold, digests, cpu_seconds=cpu)


def _place(job: EngineJob, question: Question) -> Path:
    return Path(job.work) / f"{question.name}.parquet"


def _execute(connection: Any, job: EngineJob) -> list[int]:
    columns = ", ".join(f"epoch_us({name}) AS {name}" if name == "ts" else name for name in COLUMNS)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE packets AS SELECT {columns} FROM read_parquet('{job.file}')")
    counts = []
    for question in asked(job):
        query = query_of(question)
        if job.sink == PARQUET:
            connection.execute(f"COPY ({query}) TO '{_place(job, question)}' (FORMAT parquet)")
            counts.append(0)
        else:
            counts.append(connection.execute(query).to_arrow_table().num_rows)
    return counts


def query_of(question: Question) -> str:
    parts = [(cut(part.column, part, part.below) if isinstance(part, Key) else part, n) for part, n in question.parts()]
    names = ", ".join(question.names)
    keys = ", ".join(f"{text} AS {name}" for text, name in parts)
    sums = "count(*) AS packets, CAST(sum(bytes) AS BIGINT) AS total"
    if question.flows:
        sums += f", min(ts) AS first, max(ts) AS last, count(*) FILTER (WHERE {OPENED}) AS opened"
        sums += f", count(*) FILTER (WHERE {CLOSED}) AS closed"
    where = f" WHERE {question.where}" if question.where else ""
    query = f"SELECT {keys}, ts // {question.pane} AS w, {sums} FROM packets{where} GROUP BY ALL"
    if question.panes > 1:
        sums = "CAST(sum(packets) AS BIGINT) AS packets, CAST(sum(total) AS BIGINT) AS total"
        panes = f"({query}), range({question.panes}) AS r(k)"
        query = f"SELECT {names}, w - k AS w, {sums} FROM {panes} GROUP BY ALL"
    if question.having:
        query = f"SELECT * FROM ({query}) WHERE packets >= {question.having}"
    if question.top:
        order = f"row_number() OVER (PARTITION BY w ORDER BY total DESC, {names})"
        query = f"SELECT * FROM ({query}) QUALIFY {order} <= {question.top}"
    return f"SELECT * EXCLUDE (w), w * {question.pane}::BIGINT AS window_start FROM ({query})"


if __name__ == "__main__":
    serve(run)
