"""DuckDB in process: one query per aggregation over a table loaded once, or GROUPING SETS over the file.

Both were tried in several forms and the faster kept: loading the needed columns into memory first beats reading
the file for each query, and an integer window number beats `time_bucket`.  Results are fetched as Arrow.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from penstock.bench.digest import Digest, digest, digest_batches
from penstock.bench.job import Answer, Job, elapsed, serve, timed


def run(job: Job) -> Answer:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {job.threads}")
    connection.execute("SET preserve_insertion_order = false")
    execute = _grouping_sets if job.mode == "grouping_sets" else _separate
    results = execute(connection, job)
    cold = elapsed(job)
    digests = _digests_of_sets(results, job) if job.mode == "grouping_sets" else _digests_of_queries(results, job)
    del results
    warm, _ = timed(lambda: execute(connection, job))
    return Answer(duckdb.__version__, warm, job.rows, cold, digests)


def _input(job: Job) -> str:
    columns = ", ".join((*job.attributes, job.value))
    window = f"CAST(epoch_us({job.time}) // {job.window} AS INTEGER) AS w"
    return f"SELECT {columns}, {window} FROM read_parquet('{job.file}')"


def _aggregates(job: Job) -> str:
    return f"w * {job.window}::BIGINT AS window_start, count(*) AS n, CAST(sum({job.value}) AS BIGINT) AS total"


def _separate(connection: Any, job: Job) -> list[pa.Table]:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE flows AS {_input(job)}")
    results = []
    for keys in job.queries:
        names = ", ".join(keys)
        query = f"SELECT {names}, {_aggregates(job)} FROM flows GROUP BY {names}, w"
        results.append(connection.execute(query).to_arrow_table())
    return results


def _grouping_sets(connection: Any, job: Job) -> list[pa.Table]:
    names = ", ".join(job.attributes)
    sets = ", ".join(f"({', '.join(keys)}, w)" for keys in job.queries)
    query = f"SELECT {names}, GROUPING({names}) AS kept, {_aggregates(job)} FROM flows GROUP BY GROUPING SETS ({sets})"
    return [connection.execute(f"WITH flows AS ({_input(job)}) {query}").to_arrow_table()]


def _digests_of_queries(results: list[pa.Table], job: Job) -> tuple[str, ...]:
    rest = ["window_start", "n", "total"]
    return tuple(
        str(digest_batches(table.to_batches(), [*keys, *rest]))
        for keys, table in zip(job.queries, results, strict=True)
    )


def _digests_of_sets(results: list[pa.Table], job: Job) -> tuple[str, ...]:
    # GROUPING gives a word with a bit per attribute, the first one highest, set where it is not grouped by.
    count = len(job.attributes)
    every = 2**count - 1
    place = {name: 1 << (count - 1 - i) for i, name in enumerate(job.attributes)}
    digests = {every - sum(place[name] for name in keys): Digest() for keys in job.queries}
    masks = {every - sum(place[name] for name in keys): keys for keys in job.queries}
    for batch in results[0].to_batches():
        for mask in pa.compute.unique(batch["kept"]).to_pylist():
            part = batch.filter(pa.compute.equal(batch["kept"], mask))
            digests[mask] += digest([part[name] for name in (*masks[mask], "window_start", "n", "total")])
    return tuple(str(digests[mask]) for mask in digests)


if __name__ == "__main__":
    serve(run)
