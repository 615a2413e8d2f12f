"""Flink's Table API in streaming mode: all aggregations as one statement set over one scan, in a local cluster.

The stream is a folder of text files, as many as there are threads, and results go to text files or to its `blackhole`:
its Python package comes without Parquet.  Objects are reused between operators, as its manual advises.  The statement
set runs twice in one Java machine; warm is what the second job takes, without the planning before it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_batches
from benchmarks.measure.job import NULL_TEXT, PARQUET, SCHEMA, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key, keys_of

PATIENCE = 60  # days that the watermark is behind where windows close at the end only
NOTE = "streaming mode; reads and writes text"
SETTINGS = {
    "pipeline.object-reuse": "true",
    "taskmanager.memory.managed.size": "2g",
    "table.local-time-zone": "UTC",
    "execution.checkpointing.interval": "30s",
    "rest.flamegraph.enabled": "false",
}


def run(job: EngineJob) -> Answer:
    from pyflink.version import __version__

    environment = environment_of(job.work, job.threads)
    schema = pq.read_schema(Path(job.file) / SCHEMA)
    environment.execute_sql(_source(job, schema))
    _execute(environment, job, schema, 0)
    cold = elapsed(job)
    shutil.rmtree(f"{job.work}/out-0", ignore_errors=True)
    _, cpu, warm = spent(lambda: _execute(environment, job, schema, 1))
    digests = tuple(_digest(job, schema, n) for n in range(len(job.queries))) if job.sink == PARQUET else ()
    return Answer(__version__, warm, job.rows, cold, digests, NOTE, cpu_seconds=cpu)


def environment_of(work: str, threads: int) -> Any:
    """A local cluster in streaming mode, with its files in the folder `work`."""
    from penstock.runtime.spark.java import ensure_java

    ensure_java()
    os.environ["FLINK_LOG_DIR"] = work
    from pyflink.table import EnvironmentSettings, TableEnvironment

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    folder = {"io.tmp.dirs": f"{work}/tmp", "execution.checkpointing.dir": f"file://{work}/checkpoints"}
    slots = {"parallelism.default": str(threads), "taskmanager.numberOfTaskSlots": str(threads)}
    for name, value in {**SETTINGS, **folder, **slots}.items():
        environment.get_config().set(name, value)
    return environment


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return "STRING"
    if pa.types.is_floating(kind):
        return "DOUBLE"
    wide = pa.types.is_timestamp(kind) or kind in (pa.uint32(), pa.int64(), pa.uint64())
    return "BIGINT" if wide else "INT"


def _source(job: EngineJob, schema: pa.Schema) -> str:
    columns = ", ".join(f"`{field.name}` {_kind(field.type)}" for field in schema)
    columns += "".join(f", `{key.name}` AS `{key.column}` / {2**key.below}" for key in job.keys if key.length)
    late = f"INTERVAL '{PATIENCE}' DAY" if job.delay_seconds is None else f"INTERVAL '{job.delay_seconds}' SECOND"
    return (
        f"CREATE TABLE flows ({columns}, `at` AS TO_TIMESTAMP_LTZ(`{job.time}` / 1000, 3), "
        f"WATERMARK FOR `at` AS `at` - {late}) WITH ('connector' = 'filesystem', 'path' = 'file://{job.file}', "
        f"'source.path.regex-pattern' = '.*[.]csv', 'format' = 'csv', 'csv.null-literal' = '{NULL_TEXT}')"
    )


def _execute(environment: Any, job: EngineJob, schema: pa.Schema, turn: int) -> float:
    """Run all aggregations; returns the seconds of the job."""
    statements = environment.create_statement_set()
    window = f"TABLE(TUMBLE(TABLE flows, DESCRIPTOR(`at`), INTERVAL '{job.window_seconds}' SECOND(6)))"
    for number in range(len(job.queries)):
        columns = ", ".join(f"`{one.name}` {_kind(schema.field(one.column).type)}" for one in _keys(job, number))
        results = f"{columns}, window_start TIMESTAMP(3), n BIGINT, total BIGINT"
        environment.execute_sql(f"CREATE TABLE q{number}_{turn} ({results}) WITH ({_sink(job, turn, number)})")
        names = ", ".join(f"`{name}`" for name in job.names(number))
        statements.add_insert_sql(
            f"INSERT INTO q{number}_{turn} SELECT {names}, window_start, count(*), sum(CAST(`{job.value}` AS BIGINT)) "
            f"FROM {window} GROUP BY {names}, window_start, window_end"
        )
    client = statements.execute().get_job_client()
    milliseconds: int = client.get_job_execution_result().result().get_net_runtime()
    return milliseconds / 1000


def _keys(job: EngineJob, number: int) -> tuple[Key, ...]:
    return keys_of(job.queries[number])


def _sink(job: EngineJob, turn: int, number: int) -> str:
    if job.sink != PARQUET:
        return "'connector' = 'blackhole'"
    place = f"file://{job.work}/out-{turn}/{number}"
    return f"'connector' = 'filesystem', 'path' = '{place}', 'format' = 'csv', 'csv.null-literal' = '{NULL_TEXT}'"


def _digest(job: EngineJob, schema: pa.Schema, number: int) -> str:
    keys = {one.name: _kind(schema.field(one.column).type) for one in _keys(job, number)}
    kinds = {name: pa.string() if kind == "STRING" else pa.int64() for name, kind in keys.items()}
    kinds |= {"window_start": pa.timestamp("s"), "n": pa.int64(), "total": pa.int64()}
    convert = csv.ConvertOptions(column_types=kinds, null_values=[NULL_TEXT], strings_can_be_null=True)
    names = list(kinds)
    files = [path for path in Path(f"{job.work}/out-1/{number}").rglob("*") if path.is_file() and path.name[0] != "."]
    batches = (
        batch
        for path in sorted(files)
        for batch in csv.open_csv(path, csv.ReadOptions(column_names=names), convert_options=convert)
    )
    return str(digest_batches(batches, names))


if __name__ == "__main__":
    serve(run)
