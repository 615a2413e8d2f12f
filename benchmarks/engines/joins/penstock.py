"""penstock's join by its Python interface, results in Parquet files. The job's mode has the master, without one Spark
on all threads, and the value of `--joins`: which sides are aggregated before they are stored, without one it chooses.

The first micro-batch is short, until it is known how dense streams are. Warm are all after the first that closes
windows, with the writing of results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.engines.penstock import Watch, _version
from benchmarks.measure.digest import digest_files
from benchmarks.measure.job import JOINED, Answer, JoinJob, elapsed, serve_joins

QUERY = "joined"
PROCESS, AUTO = "process", "auto"


def run(job: JoinJob) -> Answer:
    app, watch = opened(job), Watch()
    started = app.start(
        checkpoint=f"{job.work}/checkpoint", batch_rows=job.batch_rows, joins=joins_of(job.mode), listener=watch
    )
    started.await_end()
    cold = elapsed(job)
    summary: dict[str, Any] = started.summary()
    app.close()
    warm = first_warm(summary)
    seconds = sum(summary["seconds"]["per_batch"][warm:])
    rows = sum(batch["rows"] for batch in summary["batches"][warm:])
    cpu = watch.used[-1] - (watch.used[warm - 1] if warm else 0.0)
    note = "" if warm else "cold: one micro-batch only closes windows"
    digests = (str(digest_files(sorted(Path(f"{job.work}/out").glob("**/*.parquet")), JOINED)),)
    return Answer(_version(), seconds, rows, cold, digests, note, told(summary, warm), cpu)


def joins_of(mode: str) -> str:
    """The value of `--joins` in a job's mode."""
    return next((word for word in mode.split() if word != PROCESS), AUTO)


def opened(job: JoinJob) -> Any:
    """The app of a job."""
    import penstock

    app = penstock.App(master=PROCESS if PROCESS in job.mode.split() else f"local[{job.threads}]")
    for name, file in (("a", job.left), ("b", job.right)):
        app.stream(name, f"parquet:{file}", time="ts", delay="0 seconds")
    app.query(QUERY, query(job), sink=f"parquet:{job.work}/out")
    return app


def query(job: JoinJob) -> str:
    window = f"[RANGE '{job.range_seconds} seconds' SLIDE '{job.slide_seconds} seconds']"
    columns = "a.g AS g, b.h AS h, count(*) AS n, sum(a.x) AS total, max(b.y) AS most"
    return f"SELECT {columns} FROM a {window} JOIN b {window} ON a.k = b.k GROUP BY a.g, b.h"


def first_warm(summary: dict[str, Any]) -> int:
    """The first micro-batch after one that has closed windows; 0 where none closes any after it."""
    closing = [number for number, batch in enumerate(summary["batches"]) if batch["windows"]]
    return closing[0] + 1 if len(closing) > 1 else 0


def told(summary: dict[str, Any], first: int) -> dict[str, Any]:
    """Seconds of tasks and of closing windows, and windows closed, of warm micro-batches; bytes of state that were
    written, read, and kept after a micro-batch at most."""
    seconds, batches, state = summary["seconds"], summary["batches"], summary["state"]
    warm = slice(first, None)
    return {
        "task_seconds": sum(seconds["tasks"][warm]),
        "join_seconds": sum(seconds["merge"][warm]),
        "windows": sum(batch["windows"] for batch in batches[warm]),
        "batches": len(batches),
        "state_bytes": max(batch["bytes"]["kept"] for batch in batches),
        "state_written": state["written"],
        "state_read": state["read"],
        "startup_seconds": seconds["startup"],
        "memory": summary["memory"],
    }


if __name__ == "__main__":
    serve_joins(run)
