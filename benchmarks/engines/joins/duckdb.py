"""DuckDB in process: both streams loaded into memory, then a query for each window, all results in one Parquet file.

DuckDB 2.0 aggregates both sides before it joins them, where it thinks that this pays. Mode `late` switches that off.
Window by window was as fast as one query of all windows, or faster, but for windows of a few thousand records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from benchmarks.engines.joins.arrow import starts
from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_files
from benchmarks.measure.job import JOINED, Answer, JoinJob, elapsed, serve_joins, timed

EARLY = "partial_aggregate_pushdown"


def run(job: JoinJob) -> Answer:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {job.threads}")
    connection.execute("SET preserve_insertion_order = false")
    if job.mode == "late":
        connection.execute(f"SET disabled_optimizers = '{EARLY}'")
    _execute(connection, job)
    cold = elapsed(job)
    seconds, cpu, told = spent(lambda: _execute(connection, job))
    digests = (str(digest_files([_place(job)], JOINED)),)
    return Answer(duckdb.__version__, seconds, 2 * job.rows, cold, digests, extra=told, cpu_seconds=cpu)


def _place(job: JoinJob) -> Path:
    return Path(job.work) / "out.parquet"


def _execute(connection: Any, job: JoinJob) -> dict[str, Any]:
    loading, _ = timed(lambda: _load(connection, job))
    windows = _windows(connection, job)
    joining, _ = timed(lambda: [connection.execute(_query(job, start)) for start in windows])
    connection.execute(f"COPY found TO '{_place(job)}' (FORMAT parquet)")
    return {"load_seconds": loading, "join_seconds": joining, "windows": len(windows)}


def _load(connection: Any, job: JoinJob) -> None:
    for name, file in (("a", job.left), ("b", job.right)):
        read = f"SELECT epoch_us(ts) AS ts, * EXCLUDE (ts) FROM read_parquet('{file}')"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {read}")
    columns = "g INTEGER, h INTEGER, window_start BIGINT, n BIGINT, total BIGINT, most INTEGER"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE found ({columns})")


def _windows(connection: Any, job: JoinJob) -> range:
    each = " UNION ALL ".join(f"SELECT min(ts) AS least, max(ts) AS most FROM {name}" for name in "ab")
    return starts(job, *connection.execute(f"SELECT min(least), max(most) FROM ({each})").fetchone())


def _query(job: JoinJob, start: int) -> str:
    a, b = (f"(SELECT * FROM {name} WHERE ts >= {start} AND ts < {start + job.range})" for name in "ab")
    aggregates = "count(*), CAST(sum(x) AS BIGINT), max(y)"
    return f"INSERT INTO found SELECT g, h, {start}, {aggregates} FROM {a} a JOIN {b} b USING (k) GROUP BY g, h"


if __name__ == "__main__":
    serve_joins(run)
