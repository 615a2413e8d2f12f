"""ClickHouse in process (`chdb`): a query for each question, over a table in memory, loaded once. Windows that slide
are put together from their panes; the first of a window are LIMIT … BY."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.engines.clickhouse import cut
from benchmarks.engines.monitoring.questions import CLOSED, COLUMNS, OPENED, Question, asked
from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key


def run(job: EngineJob) -> Answer:
    import chdb
    from chdb.session import Session

    session = Session(f"{job.work}/database")
    session.query(f"SET max_threads = {job.threads}")
    session.query("SET engine_file_truncate_on_insert = 1")
    _execute(session, job)
    cold = elapsed(job)
    warm, cpu, _ = spent(lambda: _execute(session, job))
    digests: tuple[str, ...] = ()
    if job.sink == PARQUET:
        digests = tuple(str(digest_files([_place(job, one)], one.columns)) for one in asked(job))
    session.close()
    return Answer(chdb.engine_version, warm, job.rows, cold, digests, cpu_seconds=cpu)


def _place(job: EngineJob, question: Question) -> Path:
    return Path(job.work) / f"{question.name}.parquet"


def _execute(session: Any, job: EngineJob) -> None:
    known = {name: f"assumeNotNull({name})" for name in COLUMNS}
    known["ts"] = "toUnixTimestamp64Micro(assumeNotNull(ts))"
    columns = ", ".join(f"{text} AS {name}" for name, text in known.items())
    session.query("DROP TABLE IF EXISTS packets")
    session.query(f"CREATE TABLE packets ENGINE = Memory AS SELECT {columns} FROM file('{job.file}', Parquet)")
    for question in asked(job):
        query = query_of(question)
        if job.sink == PARQUET:
            session.query(f"INSERT INTO FUNCTION file('{_place(job, question)}', Parquet) {query}")
        else:
            session.query(query, "Null")


def query_of(question: Question) -> str:
    parts = [(cut(part.column, part, part.below) if isinstance(part, Key) else part, n) for part, n in question.parts()]
    names = ", ".join(question.names)
    keys = ", ".join(text if text == name else f"{text} AS {name}" for text, name in parts)
    sums = "count() AS packets, sum(p.bytes) AS total"
    if question.flows:
        sums += f", min(p.ts) AS first, max(p.ts) AS last, countIf({OPENED}) AS opened, countIf({CLOSED}) AS closed"
    where = f" WHERE {question.where}" if question.where else ""
    query = f"SELECT {keys}, intDiv(p.ts, {question.pane}) AS w, {sums} FROM packets AS p{where} GROUP BY {names}, w"
    if question.panes > 1:
        sums = "sum(q.packets) AS packets, sum(q.total) AS total"
        panes = f"SELECT {names}, q.w - k AS start, {sums} FROM ({query}) AS q ARRAY JOIN range({question.panes}) AS k"
        query = f"SELECT * EXCEPT (start), start AS w FROM ({panes} GROUP BY {names}, start)"
    if question.having:
        query = f"SELECT * FROM ({query}) WHERE packets >= {question.having}"
    if question.top:
        query = f"SELECT * FROM ({query}) ORDER BY w, total DESC, {names} LIMIT {question.top} BY w"
    return f"SELECT * EXCEPT (w), w * {question.pane} AS window_start FROM ({query})"


if __name__ == "__main__":
    serve(run)
