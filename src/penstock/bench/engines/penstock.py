"""penstock itself, by its Python interface: one app with all queries, results in Parquet files.

The job's mode is the plan (`none`, `auto`, …).  Warm are all micro-batches but the first, with the writing of results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.digest import Digest, digest_batches
from penstock.bench.job import Answer, Job, elapsed, serve
from penstock.logical.query import Field
from penstock.sources.base import fields


def run(job: Job) -> Answer:
    import penstock

    app = penstock.App(master=f"local[{job.threads}]")
    # Addresses as the numbers that the peers read, and the watermark of Spark's streaming queries.
    app.stream("flows", f"parquet:{job.file}", fields=_numbers(job), time=job.time, delay="1 second")
    for number, keys in enumerate(job.queries):
        app.query(f"q{number}", _query(job, keys), sink=f"parquet:{job.work}/out-{number}")
    started = app.start(checkpoint=f"{job.work}/checkpoint", plan=job.mode or "none", batch_rows=job.batch_rows)
    started.await_end()
    cold = elapsed(job)
    summary: dict[str, Any] = started.summary()
    seconds, rows, note = warm_part(summary)
    app.close()
    digests = tuple(_digest(job, number) for number in range(len(job.queries)))
    extra: dict[str, Any] = {name: summary[name] for name in ("memory", "work", "seconds") if name in summary}
    return Answer(_version(), seconds, rows, cold, digests, note, extra)


def _numbers(job: Job) -> tuple[Field, ...]:
    """The file's columns by their stored types alone."""
    return fields(pa.schema([field.remove_metadata() for field in pq.read_schema(job.file)]))


def _query(job: Job, keys: tuple[str, ...]) -> str:
    names = ", ".join(keys)
    window = f"[RANGE '{job.window_seconds} seconds' SLIDE '{job.window_seconds} seconds']"
    return f"SELECT {names}, count(*) AS n, sum({job.value}) AS total FROM flows {window} GROUP BY {names}"


def warm_part(summary: dict[str, Any]) -> tuple[float, int, str]:
    """Seconds and rows of all micro-batches after the first; with one batch only, its own."""
    seconds, batches = summary["seconds"]["per_batch"], summary["batches"]
    rows = sum(batch["rows"] for batch in batches[1:])
    if rows:
        return sum(seconds[1:]), rows, ""
    return sum(seconds), sum(batch["rows"] for batch in batches), "one micro-batch only, the cold one"


def _digest(job: Job, number: int) -> str:
    names = [*job.queries[number], "window_start", "n", "total"]
    total = Digest()
    for path in sorted(Path(f"{job.work}/out-{number}").glob("**/*.parquet")):
        total += digest_batches(pq.ParquetFile(path).iter_batches(columns=names), names)
    return str(total)


def _version() -> str:
    from importlib.metadata import version

    return version("penstock")


if __name__ == "__main__":
    serve(run)
