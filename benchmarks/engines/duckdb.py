"""DuckDB in process: one query per aggregation over a table loaded once, GROUPING SETS over the file, or (`rolled_up`)
one aggregate by the finest keys and all others from it, as a careful user would by hand.

All were tried in several forms and the faster kept: loading the needed columns into memory first beats reading
the file for each query, an integer window number beats `time_bucket`, and the first bits of an address as a small
integer beat masks.  Results are copied to Parquet files, or fetched as Arrow, counted and dropped.
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
from benchmarks.measure.keys import Key, Rung, ladder

SEPARATE, SETS, ROLLED_UP = "", "grouping_sets", "rolled_up"
WHOLE = {8: "UTINYINT", 16: "USMALLINT", 32: "UINTEGER"}
REST = ("window_start", "n", "total")


def run(job: EngineJob) -> Answer:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {job.threads}")
    connection.execute("SET preserve_insertion_order = false")
    sets = job.mode == SETS
    execute = {SEPARATE: _separate, SETS: _grouping_sets, ROLLED_UP: _rolled_up}[job.mode]
    execute(connection, job)
    cold = elapsed(job)
    warm, cpu, found = spent(lambda: execute(connection, job))
    if job.sink == PARQUET:
        digests = _digests_of_sets(job) if sets else _digests_of_queries(job)
    else:
        digests = _counts_of_sets(found, job) if sets else tuple(counted(rows) for rows in found)
    return Answer(duckdb.__version__, warm, job.rows, cold, digests, cpu_seconds=cpu)


def _input(job: EngineJob) -> str:
    keys = ", ".join(f"{cut(key.column, key, key.below)} AS {key.name}" for key in job.keys)
    return f"SELECT {keys}, {job.value}, {_window(job)} AS w FROM read_parquet('{job.file}')"


def _window(job: EngineJob) -> str:
    return f"epoch_us({job.time}) // {job.window}"


def cut(source: str, key: Key, bits: int) -> str:
    """A key from a column that has so many bits more."""
    return f"CAST({source} >> {bits} AS {WHOLE[key.size]})" if bits else source


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
    for number in range(len(job.queries)):
        names = ", ".join(job.names(number))
        query = f"SELECT {names}, {_aggregates(job)} FROM flows GROUP BY {names}, w"
        counts.append(_result(connection, job, query, number).num_rows)
    return counts


def _rolled_up(connection: Any, job: EngineJob) -> list[int]:
    """Rungs that feed others are tables in memory."""
    rungs, counts = ladder(job.queries), dict[int, int]()
    feeding = {rung.parent for rung in rungs}
    for place, rung in enumerate(rungs):
        query = _rung(job, rung, rungs)
        if place in feeding:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE r{place} AS {query}")
            query = f"FROM r{place}"
        if rung.query is not None:
            names = ", ".join(key.name for key in rung.keys)
            query = f"SELECT {names}, w * {job.window}::BIGINT AS window_start, n, total FROM ({query})"
            counts[rung.query] = _result(connection, job, query, rung.query).num_rows
    return [counts[number] for number in range(len(job.queries))]


def _rung(job: EngineJob, rung: Rung, rungs: list[Rung]) -> str:
    by = ", ".join(str(place + 1) for place in range(len(rung.keys) + 1))
    if rung.parent is None:
        columns = [f"{cut(key.column, key, key.below)} AS {key.name}" for key in rung.keys]
        sums, source = f"count(*) AS n, CAST(sum({job.value}) AS BIGINT) AS total", f"read_parquet('{job.file}')"
        return f"SELECT {', '.join(columns)}, {_window(job)} AS w, {sums} FROM {source} GROUP BY {by}"
    finer = [next(one for one in rungs[rung.parent].keys if one.feeds(key)) for key in rung.keys]
    columns = [f"{cut(one.name, key, one.cut(key))} AS {key.name}" for one, key in zip(finer, rung.keys, strict=True)]
    sums = "CAST(sum(n) AS BIGINT) AS n, CAST(sum(total) AS BIGINT) AS total"
    return f"SELECT {', '.join(columns)}, w, {sums} FROM r{rung.parent} GROUP BY {by}"


def _grouping_sets(connection: Any, job: EngineJob) -> pa.Table:
    names = ", ".join(job.attributes)
    sets = ", ".join(f"({', '.join(job.names(n))}, w)" for n in range(len(job.queries)))
    query = f"SELECT {names}, GROUPING({names}) AS kept, {_aggregates(job)} FROM flows GROUP BY GROUPING SETS ({sets})"
    return _result(connection, job, f"WITH flows AS ({_input(job)}) {query}", 0)


def _digests_of_queries(job: EngineJob) -> tuple[str, ...]:
    return tuple(str(digest_files([_place(job, n)], [*job.names(n), *REST])) for n in range(len(job.queries)))


def _masks(job: EngineJob) -> dict[int, tuple[str, ...]]:
    """GROUPING gives a word with a bit per attribute, the first one highest, set where it is not grouped by."""
    count = len(job.attributes)
    place = {name: 1 << (count - 1 - i) for i, name in enumerate(job.attributes)}
    every = (job.names(number) for number in range(len(job.queries)))
    return {2**count - 1 - sum(place[name] for name in names): names for names in every}


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
