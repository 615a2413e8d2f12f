"""DuckDB in process: one query per aggregation over a table loaded once, or GROUPING SETS over the file.

Both were tried in several forms and the faster kept: loading the needed columns into memory first beats reading
the file for each query, and an integer window number beats `time_bucket`.  Results are copied to Parquet files, or
fetched as Arrow, counted and dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import Digest, counted, digest, digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve

REST = ("window_start", "n", "total")


def run(job: EngineJob) -> Answer:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {job.threads}")
    connection.execute("SET preserve_insertion_order = false")
    sets = job.mode == "grouping_sets"
    execute = _grouping_sets if sets else _separate
    execute(connection, job)
    cold = elapsed(job)
    warm, cpu, found = spent(lambda: execute(connection, job))
    if job.sink == PARQUET:
        digests = _digests_of_sets(job) if sets else _digests_of_queries(job)
    else:
        digests = _counts_of_sets(found, job) if sets else tuple(counted(rows) for rows in found)
    return Answer(duckdb.__version__, warm, job.rows, cold, digests, cpu_seconds=cpu)


def _input(job: EngineJob) -> str:
    window = f"epoch_us({job.time}) // {job.window} AS w"
    return f"SELECT {', '.join(job.attributes)}, {job.value}, {window} FROM read_parquet('{job.file}')"


def _aggregates(job: EngineJob) -> str:
    return f"w * {job.window}::BIGINT AS window_start, count(*) AS n, CAST(sum({job.value}) AS BIGINT) AS total"


def _place(job: EngineJob, number: int) -> Path:
    return Path(job.work) / f"out-{number}.parquet"


def _result(connection: Any, job: EngineJob, query: str, number: int) -> pa.Table:
    """The answer of a query; of one that is written, nothing."""
    if job.sink == PARQUET:
        connection.execute(f"COPY ({query}) TO '{_place(job, number)}' (FORMAT parquet)")
        return pa.table({})
    return connection.execute(query).to_arrow_table()


def _separate(connection: Any, job: EngineJob) -> list[int]:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE flows AS {_input(job)}")
    counts = []
    for number, keys in enumerate(job.queries):
        names = ", ".join(keys)
        query = f"SELECT {names}, {_aggregates(job)} FROM flows GROUP BY {names}, w"
        counts.append(_result(connection, job, query, number).num_rows)
    return counts


def _grouping_sets(connection: Any, job: EngineJob) -> pa.Table:
    names = ", ".join(job.attributes)
    sets = ", ".join(f"({', '.join(keys)}, w)" for keys in job.queries)
    query = f"SELECT {names}, GROUPING({names}) AS kept, {_aggregates(job)} FROM flows GROUP BY GROUPING SETS ({sets})"
    return _result(connection, job, f"WITH flows AS ({_input(job)}) {query}", 0)


def _digests_of_queries(job: EngineJob) -> tuple[str, ...]:
    return tuple(str(digest_files([_place(job, number)], [*keys, *REST])) for number, keys in enumerate(job.queries))


def _masks(job: EngineJob) -> dict[int, tuple[str, ...]]:
    """GROUPING gives a word with a bit per attribute, the first one highest, set where it is not grouped by."""
    count = len(job.attributes)
    place = {name: 1 << (count - 1 - i) for i, name in enumerate(job.attributes)}
    return {2**count - 1 - sum(place[name] for name in keys): keys for keys in job.queries}


def _digests_of_sets(job: EngineJob) -> tuple[str, ...]:
    masks = _masks(job)
    digests = dict.fromkeys(masks, Digest())
    for batch in pq.ParquetFile(_place(job, 0)).iter_batches():
        for mask in pc.unique(batch["kept"]).to_pylist():
            part = batch.filter(pc.equal(batch["kept"], mask))
            digests[mask] += digest([part[name] for name in (*masks[mask], *REST)])
    return tuple(str(digests[mask]) for mask in masks)


def _counts_of_sets(result: pa.Table, job: EngineJob) -> tuple[str, ...]:
    found = {entry["values"]: entry["counts"] for entry in pc.value_counts(result["kept"]).to_pylist()}
    return tuple(counted(found.get(mask, 0)) for mask in _masks(job))


if __name__ == "__main__":
    serve(run)
