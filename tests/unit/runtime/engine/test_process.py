"""The engine without Spark: tasks in worker processes, what becomes of workers that die, and runs from start to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.app.api import App
from penstock.errors import ConfigError, RunError, StateError
from penstock.runtime.batch.held import committed, done_mark
from penstock.runtime.batch.offsets import decision_path
from penstock.runtime.engine.pool import Pool
from penstock.runtime.engine.process import ProcessExecutor
from penstock.sinks.spark import SparkSink
from penstock.state import manifest as manifests
from penstock.state.protocol import MergeReport

APP = """CREATE STREAM s FROM 'parquet:{folder}' WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT a, count(*) AS n FROM s [WINDOW 1 MINUTE] GROUP BY a;
CREATE QUERY m AS SELECT max(n) AS most FROM q [WINDOW 2 MINUTES];
"""
ROWS, BATCH = 3_000, 500


def write(path: Path, count: int = ROWS, start: int = 0) -> None:
    times = pa.array([(start + number) * 250_000 for number in range(count)], pa.timestamp("us"))
    path.parent.mkdir(exist_ok=True)
    aside = path.with_name(f".{path.name}")  # as users have to: a run that follows the folder reads what it sees
    pq.write_table(pa.table({"ts": times, "a": [number % 7 for number in range(count)]}), aside, row_group_size=100)
    aside.rename(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "in" / "a.parquet")
    return tmp_path


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(2)
    yield made
    made.close()


def app(folder: Path) -> App:
    return App(master="process").sql(APP.format(folder=folder / "in"))


def start(folder: Path, place: str = "run", **settings: Any) -> Any:
    where = folder / place
    return app(folder).start(str(where / "ckpt"), output=str(where / "out"), batch_rows=BATCH, **settings)


def results(folder: Path, place: str = "run", query: str = "q") -> list[dict[str, Any]]:
    tables = [pq.read_table(path) for path in sorted((folder / place / "out" / query).glob("*.parquet"))]
    return sorted((row for table in tables for row in table.to_pylist()), key=str)


# -- workers


def report(number: int) -> MergeReport:
    return MergeReport((), 0, {"q": number}, (), os.getpid(), ())


def refuse(number: int) -> MergeReport:
    if number == 2:
        raise RunError("task 2 has no more room", "make some")
    return report(number)


def full(number: int) -> MergeReport:
    raise OSError(28, "No space left on device")


def wrong(number: int) -> MergeReport:
    raise ValueError(f"a bug in {number}")


def die(how: int, number: int) -> MergeReport:
    if number == 1:
        os.kill(os.getpid(), how)
    return report(number)


def leave(number: int) -> MergeReport:
    os._exit(3)


def sleep(file: Path, number: int) -> MergeReport:
    (file / str(os.getpid())).touch()
    time.sleep(600)
    return report(number)


def test_shares_come_back_in_order_from_other_processes(pool: Pool) -> None:
    executor = ProcessExecutor(2, pool)
    for count in (1, 2, 17):
        found = executor.run_shares(count, report, MergeReport)
        assert [one.rows["q"] for one in found] == list(range(count))
        pids = {one.read for one in found}
        assert os.getpid() not in pids
        assert len(pids) <= 2
        assert all(one.spent.memory.peak > 0 for one in found)


def test_without_a_pool_they_run_here() -> None:
    found = ProcessExecutor(4).run_shares(3, report, MergeReport)
    assert [(one.rows["q"], one.read) for one in found] == [(number, os.getpid()) for number in range(3)]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (refuse, "task 2 has no more room"),
        (full, "a merge task failed: .*No space left"),
        (wrong, "a task failed: Val"),
    ],
)
def test_errors_come_back_as_sentences(pool: Pool, run: Callable[[int], MergeReport], message: str) -> None:
    with pytest.raises(RunError, match=message):
        ProcessExecutor(2, pool).run_shares(4, run, MergeReport)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (partial(die, signal.SIGKILL), r"a worker process ended before its task did: it was killed \(SIGKILL\)"),
        (partial(die, signal.SIGSEGV), r"a worker process ended before its task did: it was killed \(SIGSEGV\)"),
        (leave, "a worker process ended before its task did: its exit code is 3"),
    ],
)
def test_a_worker_that_dies_is_told_of(pool: Pool, run: Callable[[int], MergeReport], message: str) -> None:
    with pytest.raises(RunError, match=message):
        ProcessExecutor(2, pool).run_shares(4, run, MergeReport)
    assert not alive(pool.zygote)


def test_workers_are_forked_from_a_process_without_threads(pool: Pool) -> None:
    ProcessExecutor(2, pool).run_shares(2, report, MergeReport)
    threads = [(path / "comm").read_text().strip() for path in Path(f"/proc/{pool.zygote}/task").iterdir()]
    assert [name for name in threads if name != "jemalloc_bg_thd"] == ["python"]  # which knows about forks


def test_busy_workers_end_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from functools import partial; from pathlib import Path\n"
        "from penstock.runtime.engine.pool import Pool\nfrom penstock.runtime.engine.process import ProcessExecutor\n"
        "from penstock.state.protocol import MergeReport\nfrom test_process import sleep\n"
        f"ProcessExecutor(2, Pool(2)).run_shares(2, partial(sleep, Path({str(tmp_path)!r})), MergeReport)"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    driver = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    await_that(lambda: len(list(tmp_path.iterdir())) == 2)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert all(map(alive, workers))
    driver.kill()
    driver.wait()
    await_that(lambda: not any(map(alive, workers)))


def test_busy_workers_end_with_the_zygote(pool: Pool, tmp_path: Path) -> None:
    def strike() -> None:
        await_that(lambda: len(list(tmp_path.iterdir())) == 2)
        os.kill(pool.zygote, signal.SIGKILL)

    striking = threading.Thread(target=strike)
    striking.start()
    with pytest.raises(RunError, match="a worker process ended before its task did"):
        ProcessExecutor(2, pool).run_shares(2, partial(sleep, tmp_path), MergeReport)
    striking.join()
    await_that(lambda: not any(alive(int(path.name)) for path in tmp_path.iterdir()))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def await_that(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- runs


def test_one_worker_or_two_change_no_result(folder: Path) -> None:
    summaries = {}
    for workers in (1, 2):
        run = start(folder, str(workers), parallelism=workers)
        assert run.await_end()
        summaries[workers] = run.summary()
        assert run.window_account("q")[-1]["exact"] > 0
    assert len(results(folder, "1")) == 7 * 13
    for query in ("q", "m"):
        assert results(folder, "1", query) == results(folder, "2", query)
    assert summaries[1]["accounting"] == summaries[2]["accounting"]
    assert len(summaries[1]["batches"]) == ROWS // BATCH
    assert summaries[1]["spark"] == {"version": None}


def test_no_spark_is_loaded(folder: Path) -> None:
    text, place = APP.format(folder=folder / "in"), str(folder)
    code = (
        "import sys, penstock\n"
        f"app, place = penstock.App(master='process').sql({text!r}), {place!r}\n"
        "run = app.start(place + '/ckpt', output=place + '/out', parallelism=2)\n"
        "run.await_end(); run.summary()\n"
        "print(sorted(name for name in ('pyspark', 'py4j') if name in sys.modules))"
    )  # a script without a guard around its main part: it must not be run again in a worker
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_run_goes_on_as_files_arrive_until_it_is_stopped(folder: Path) -> None:
    run = start(folder, parallelism=1, until="stopped")
    await_that(lambda: run.progress()["rows"] == ROWS)
    write(folder / "in" / "b.parquet", 800, ROWS)
    await_that(lambda: run.progress()["rows"] == ROWS + 800)
    assert not run.await_end(0)
    run.stop()
    assert not run.progress()["active"]
    assert not run.summary()["ended"]
    again = start(folder, parallelism=1)
    again.await_end()
    assert again.summary()["ended"]
    assert sum(row["n"] for row in results(folder)) == ROWS + 800


def test_queries_come_and_go(folder: Path) -> None:
    run = start(folder, parallelism=1, until="stopped")
    await_that(lambda: run.progress()["rows"] == ROWS)
    run.add_query("late", "SELECT count(*) AS n FROM s [WINDOW 1 MINUTE]")
    run.drop_query("m")
    with pytest.raises(ConfigError, match="writes to memory:shown, which needs Spark"):
        run.add_query("view", "SELECT count(*) AS n FROM s [WINDOW 1 MINUTE]", "memory:shown")
    write(folder / "in" / "b.parquet", 2_000, ROWS)
    await_that(lambda: run.progress()["rows"] == ROWS + 2_000)
    run.stop()
    assert {row["n"] for row in results(folder, query="late")} == {240}


def test_a_batch_that_was_committed_and_not_marked_is_published_again(folder: Path) -> None:
    run = start(folder, parallelism=1, until="stopped")
    await_that(lambda: run.progress()["rows"] == ROWS)
    run.stop()
    checkpoint, before = folder / "run" / "ckpt", results(folder)
    newest = manifests.newest(checkpoint)
    assert newest is not None
    done_mark(checkpoint, newest.batch).unlink()
    assert not committed(checkpoint, newest.batch)
    again = start(folder, parallelism=1)
    again.await_end()
    assert again.summary()["ended"]
    assert [row for row in results(folder) if row in before] == before
    assert sum(row["n"] for row in results(folder)) == ROWS


def test_a_damaged_decision_ends_the_run(folder: Path) -> None:
    run = start(folder, parallelism=1, until="stopped")
    await_that(lambda: run.progress()["rows"] == ROWS)
    run.stop()
    newest, before = manifests.newest(folder / "run" / "ckpt"), results(folder)
    assert newest is not None
    path = decision_path(folder / "run" / "ckpt", newest.batch + 1)
    path.write_bytes(decision_path(folder / "run" / "ckpt", newest.batch).read_bytes()[:-9])
    with pytest.raises(StateError, match=f"{path} is damaged"):
        start(folder, parallelism=1).await_end()
    assert results(folder) == before


def test_a_worker_that_is_killed_ends_the_run_and_the_next_one_goes_on(folder: Path) -> None:
    launched = {**os.environ, "PENSTOCK_FAULT": "segment.close:2", "PENSTOCK_FAULT_ONCE": str(folder / "fired")}
    (folder / "app.sql").write_text(APP.format(folder=folder / "in"))
    command = [sys.executable, "-m", "penstock.app.cli", "run", str(folder / "app.sql"), "--master", "process"]
    command += ["--parallelism", "2", "--checkpoint", str(folder / "run" / "ckpt"), "--output", str(folder / "run/out")]
    command += ["--batch-rows", str(BATCH), "--quiet", "--json"]
    done = subprocess.run(command, env=launched, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: a worker process ended before its task did: it was killed (SIGKILL)\n")
    assert len(done.stderr.strip().splitlines()) == 2
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["ended"]
    assert sum(row["n"] for row in results(folder)) == ROWS


# -- what needs Spark


def test_what_needs_spark_is_refused_before_anything_starts(folder: Path) -> None:
    sinks: list[tuple[Any, str]] = [
        ("memory:v", "memory:v"),
        (lambda frame, batch: None, "function "),
        (SparkSink("x"), "writer "),
    ]
    for sink, place in sinks:
        wrong = app(folder).query("w", "SELECT count(*) AS n FROM s [WINDOW 1 MINUTE]", sink)
        with pytest.raises(ConfigError, match=f"query 'w' writes to {place}.*, which needs Spark"):
            wrong.start(str(folder / "run" / "ckpt"), output=str(folder / "out"))
    assert not (folder / "run").exists()
    with pytest.raises(ConfigError, match="there is no Spark in a run with master 'process'"):
        App(master="process").stream("t", "spark:table")


def test_results_as_a_dataframe_need_spark(folder: Path) -> None:
    run = start(folder, parallelism=1)
    run.await_end()
    with pytest.raises(ConfigError, match="the results of query 'q' as a DataFrame need Spark"):
        run.results("q")
