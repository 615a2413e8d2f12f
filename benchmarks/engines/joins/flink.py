"""Flink's window join in SQL: both streams cut by the same window function, joined by window and key, then grouped by
window, in streaming mode in a local cluster.

Each stream is a folder of text files, one a thread, whose records alternate: all threads go through time together, as
the partitions of a topic do. Results go to text files. The job runs twice in one Java machine, and the second one is
warm; what the same job takes for a stream of one record, its start, is subtracted. In the first one checkpoints follow
each other closely: the largest is the state that it keeps. Flink goes through all pairs of a window: it has no
aggregation below a window join.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from benchmarks.engines.flink import environment_of
from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_batches
from benchmarks.measure.job import JOINED, Answer, JoinJob, elapsed, serve_joins

NOTE = "reads and writes text"
INTERVAL = "execution.checkpointing.interval"
OFTEN, SELDOM = "500ms", "30s"  # while state is looked at, and while time is taken
GLANCE = 0.02  # seconds between two looks at the checkpoints
FIRST = "part-00000.csv"
SIDES = (("a", "g", "x"), ("b", "h", "y"))


def run(job: JoinJob) -> Answer:
    from pyflink.version import __version__

    environment = environment_of(job.work, job.threads)
    _create(environment, "whole", (job.left, job.right))
    both = enumerate((job.left, job.right))
    _create(environment, "one", [first_record(folder, f"{job.work}/one-{number}") for number, folder in both])
    with watched(Path(job.work) / "checkpoints") as sizes:
        _execute(environment, job, "whole", "cold", OFTEN)
    cold = elapsed(job)
    _, idle, start = spent(lambda: _execute(environment, job, "one", "idle", SELDOM))
    _, cpu, seconds = spent(lambda: _execute(environment, job, "whole", "warm", SELDOM))
    extra = {"state_bytes": max(sizes, default=None), "checkpoints": len(sizes), "start_seconds": start}
    answer = Answer(__version__, max(0.0, seconds - start), 2 * job.rows, cold, (_digest(job, "warm"),), NOTE, extra)
    return replace(answer, cpu_seconds=max(0.0, cpu - idle))


def _create(environment: Any, what: str, folders: Sequence[str]) -> None:
    """Tables of both streams."""
    for folder, (name, group, value) in zip(folders, SIDES, strict=True):
        environment.execute_sql(_source(f"{what}_{name}", folder, ("ts", "k", group, value)))


def first_record(folder: str, place: str) -> str:
    """A stream of the first record of another one."""
    Path(place).mkdir()
    with (Path(folder) / FIRST).open() as lines:
        (Path(place) / FIRST).write_text(next(lines))
    return place


def _source(name: str, folder: str, columns: tuple[str, ...]) -> str:
    kinds = ", ".join(f"`{column}` {'BIGINT' if column == 'ts' else 'INT'}" for column in columns)
    return (
        f"CREATE TABLE {name} ({kinds}, `at` AS TO_TIMESTAMP_LTZ(`ts` / 1000, 3), WATERMARK FOR `at` AS `at`) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{folder}', "
        f"'source.path.regex-pattern' = '.*[.]csv', 'format' = 'csv')"
    )


def query(job: JoinJob, streams: str) -> str:
    """The join and the aggregation over it. Windows that slide are a HOP: its slide stands before its range."""
    sliding = job.slide_seconds != job.range_seconds
    lengths = (job.slide_seconds, job.range_seconds) if sliding else (job.range_seconds,)
    intervals = ", ".join(f"INTERVAL '{seconds}' SECOND(6)" for seconds in lengths)
    cut = "HOP" if sliding else "TUMBLE"
    a, b = (f"(SELECT * FROM TABLE({cut}(TABLE {streams}_{name}, DESCRIPTOR(`at`), {intervals})))" for name in "ab")
    return (
        "SELECT g, h, window_start, count(*), sum(CAST(x AS BIGINT)), max(y) FROM ("
        "SELECT a.g, b.h, a.x, b.y, a.window_start, a.window_end "
        f"FROM {a} a JOIN {b} b ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end) "
        "GROUP BY g, h, window_start, window_end"
    )


def _execute(environment: Any, job: JoinJob, streams: str, turn: str, checkpoints: str) -> float:
    """Run the join; returns the seconds of the job, without planning."""
    environment.get_config().set(INTERVAL, checkpoints)
    environment.execute_sql(
        f"CREATE TABLE joined_{turn} (g INT, h INT, window_start TIMESTAMP(3), n BIGINT, total BIGINT, most INT) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{job.work}/{turn}', 'format' = 'csv')"
    )
    statements = environment.create_statement_set()
    statements.add_insert_sql(f"INSERT INTO joined_{turn} {query(job, streams)}")
    client = statements.execute().get_job_client()
    milliseconds: int = client.get_job_execution_result().result().get_net_runtime()
    return milliseconds / 1000


@contextmanager
def watched(folder: Path) -> Iterator[list[int]]:
    """While it is open: bytes of each checkpoint below the folder that was completed. They go when the job ends."""
    seen: dict[Path, int] = {}
    sizes: list[int] = []
    done = threading.Event()

    def look() -> None:
        ended = False
        while not ended:
            ended = done.wait(GLANCE)  # then a last look
            for whole in folder.glob("*/chk-*/_metadata"):
                seen[whole] = max(seen.get(whole, 0), _bytes(whole.parent))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield sizes
    finally:
        done.set()
        thread.join()
        sizes.extend(seen.values())


def _bytes(folder: Path) -> int:
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except FileNotFoundError:  # it has just been removed
        return 0


def _digest(job: JoinJob, turn: str) -> str:
    kinds = dict.fromkeys(JOINED, pa.int64()) | {"window_start": pa.timestamp("s")}
    convert, reading = csv.ConvertOptions(column_types=kinds), csv.ReadOptions(column_names=list(JOINED))
    files = [path for path in Path(f"{job.work}/{turn}").rglob("*") if path.is_file() and path.name[0] != "."]
    batches = (batch for path in sorted(files) for batch in csv.open_csv(path, reading, convert_options=convert))
    return str(digest_batches(batches, JOINED))


if __name__ == "__main__":
    serve_joins(run)
