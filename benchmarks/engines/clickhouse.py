"""ClickHouse in process (`chdb`): one query per aggregation over a table in memory, loaded once.

Columns without a NULL, as the file's own statistics say, are declared so: that is how a ClickHouse table is made, and
grouping by Nullable columns is slower.  Results are inserted into Parquet files, or dropped by the format `Null`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve


def run(job: EngineJob) -> Answer:
    import chdb
    from chdb.session import Session

    session = Session(f"{job.work}/database")
    session.query(f"SET max_threads = {job.threads}")
    session.query("SET engine_file_truncate_on_insert = 1")
    _execute(session, job)
    cold = elapsed(job)
    warm, cpu, _ = spent(lambda: _execute(session, job))
    digests = _digests(job) if job.sink == PARQUET else ()
    session.close()
    return Answer(chdb.engine_version, warm, job.rows, cold, digests, cpu_seconds=cpu)


def _execute(session: Any, job: EngineJob) -> None:
    session.query("DROP TABLE IF EXISTS flows")
    session.query(f"CREATE TABLE flows ENGINE = Memory AS {_input(job)}")
    for number in range(len(job.queries)):
        _answer(session, job, number)


def _input(job: EngineJob) -> str:
    whole = _without_nulls(job)
    columns = [f"assumeNotNull({n}) AS {n}" if n in whole else n for n in (*job.attributes, job.value)]
    window = f"intDiv(toUnixTimestamp64Micro(assumeNotNull({job.time})), {job.window}) AS w"
    return f"SELECT {', '.join(columns)}, {window} FROM file('{job.file}', Parquet)"


def _without_nulls(job: EngineJob) -> set[str]:
    """Columns of which every row group says that it has no NULL."""
    metadata = pq.read_metadata(job.file)
    found = set(metadata.schema.to_arrow_schema().names)
    for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
        for column in (group.column(number) for number in range(group.num_columns)):
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                found.discard(column.path_in_schema)
    return found


def _answer(session: Any, job: EngineJob, number: int) -> None:
    names = ", ".join(job.queries[number])
    aggregates = f"w * {job.window} AS window_start, count() AS n, sum({job.value}) AS total"
    query = f"SELECT {names}, {aggregates} FROM flows GROUP BY {names}, w"
    if job.sink == PARQUET:
        session.query(f"INSERT INTO FUNCTION file('{_place(job, number)}', Parquet) {query}")
    else:
        session.query(query, "Null")


def _place(job: EngineJob, number: int) -> Path:
    return Path(job.work) / f"out-{number}.parquet"


def _digests(job: EngineJob) -> tuple[str, ...]:
    rest = ("window_start", "n", "total")
    return tuple(str(digest_files([_place(job, n)], [*keys, *rest])) for n, keys in enumerate(job.queries))


if __name__ == "__main__":
    serve(run)
