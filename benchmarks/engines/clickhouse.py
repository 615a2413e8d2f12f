"""ClickHouse in process (`chdb`): one query per aggregation over a table in memory, loaded once, or (`rolled_up`) one
aggregate by the finest keys and all others from it.

Columns without a NULL, as the file's own statistics say, are declared so: that is how a ClickHouse table is made, and
grouping by Nullable columns is slower.  Results are inserted into Parquet files, or dropped by the format `Null`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key, Rung, ladder

ROLLED_UP = "rolled_up"


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
    if job.mode == ROLLED_UP:
        _roll_up(session, job)
        return
    columns = [f"{cut(_known(job, key.column), key, key.below)} AS {key.name}" for key in job.keys]
    _load(session, "flows", f"SELECT {', '.join((*columns, job.value))}, {_window(job)} AS w FROM {_file(job)}")
    for number in range(len(job.queries)):
        names = ", ".join(job.names(number))
        aggregates = f"w * {job.window} AS window_start, count() AS n, sum({job.value}) AS total"
        _answer(session, job, number, f"SELECT {names}, {aggregates} FROM flows GROUP BY {names}, w")


def _load(session: Any, table: str, query: str) -> None:
    session.query(f"DROP TABLE IF EXISTS {table}")
    session.query(f"CREATE TABLE {table} ENGINE = Memory AS {query}")


def _file(job: EngineJob) -> str:
    return f"file('{job.file}', Parquet)"


def _window(job: EngineJob) -> str:
    return f"intDiv(toUnixTimestamp64Micro(assumeNotNull({job.time})), {job.window})"


def _known(job: EngineJob, column: str) -> str:
    return f"assumeNotNull({column})" if column in _without_nulls(job) else column


def cut(source: str, key: Key, bits: int) -> str:
    """A key from a column that has so many bits more."""
    return f"toUInt{key.size}(bitShiftRight({source}, {bits}))" if bits else source


def _roll_up(session: Any, job: EngineJob) -> None:
    """Rungs that feed others are tables in memory."""
    rungs = ladder(job.queries)
    feeding = {rung.parent for rung in rungs}
    for place, rung in enumerate(rungs):
        query = _rung(job, rung, rungs)
        if place in feeding:
            _load(session, f"r{place}", query)
            query = f"SELECT * FROM r{place}"
        if rung.query is not None:
            names = ", ".join(key.name for key in rung.keys)
            source = f"SELECT {names}, w * {job.window} AS window_start, n, total FROM ({query})"
            _answer(session, job, rung.query, source)


def _rung(job: EngineJob, rung: Rung, rungs: list[Rung]) -> str:
    by = ", ".join((*(key.name for key in rung.keys), "w"))
    if rung.parent is None:
        columns = [f"{cut(_known(job, key.column), key, key.below)} AS {key.name}" for key in rung.keys]
        rest = f"{_window(job)} AS w, count() AS n, sum({job.value}) AS total FROM {_file(job)}"
        return f"SELECT {', '.join(columns)}, {rest} GROUP BY {by}"
    finer = [next(one for one in rungs[rung.parent].keys if one.feeds(key)) for key in rung.keys]
    columns = [f"{cut(one.name, key, one.cut(key))} AS {key.name}" for one, key in zip(finer, rung.keys, strict=True)]
    sums = "sum(r.n) AS n, sum(r.total) AS total"
    return f"SELECT {', '.join(columns)}, w, {sums} FROM r{rung.parent} AS r GROUP BY {by}"


@lru_cache(maxsize=2)
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


def _answer(session: Any, job: EngineJob, number: int, query: str) -> None:
    if job.sink == PARQUET:
        session.query(f"INSERT INTO FUNCTION file('{_place(job, number)}', Parquet) {query}")
    else:
        session.query(query, "Null")


def _place(job: EngineJob, number: int) -> Path:
    return Path(job.work) / f"out-{number}.parquet"


def _digests(job: EngineJob) -> tuple[str, ...]:
    rest = ("window_start", "n", "total")
    return tuple(str(digest_files([_place(job, n)], [*job.names(n), *rest])) for n in range(len(job.queries)))


if __name__ == "__main__":
    serve(run)
