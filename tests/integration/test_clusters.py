"""Spark that is not ours alone: sessions of users, `spark-submit`, and a standalone cluster on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.faults import collect
from support.cluster import BIN, SOURCES, Cluster, driver, environment

APP = """
CREATE STREAM s FROM 'generate:uniform' WITH (rows = 40000, cardinality = 50, rate = 2000)
  WATERMARK ts DELAY '1 second';
CREATE QUERY q AS SELECT a, count(*) AS n, sum(value) AS total FROM s [RANGE '5 seconds'] GROUP BY a;
"""
RUN = ("-m", "penstock", "run", "app.sql", "--quiet", "--json", "--checkpoint", "ckpt", "--output", "out")
SHORT = ("--conf", "spark.scheduler.maxRegisteredResourcesWaitingTime=2s")
SUBMITTED = """
import json, penstock as ps
app = ps.App().sql(open("app.sql").read())
run = app.start("ckpt", output="out")
run.await_end()
context = app.session().sparkContext
told = {"master": context.master, "name": context.appName, "memory": context.getConf().get("spark.executor.memory")}
print(json.dumps(told | {"exact": run.summary()["accounting"]["exact"]}))
app.close()
"""
GROWING = """
import sys, penstock as ps
app = ps.App(master=sys.argv[1]).sql(open("app.sql").read().replace("40000", "4000000"))
counts = []
run = app.start("ckpt", output="out", batch_rows=2000, listener=lambda report, _: print(len(report.tasks), flush=True))
sys.stdin.readline()
run.stop()
app.close()
"""
OWN = """
import json, sys
from pyspark.sql import SparkSession
import penstock as ps

spark = SparkSession.builder.master("local[2]").appName("mine").config("spark.sql.session.timeZone", "Asia/Tokyo")
spark = spark.config("spark.sql.execution.arrow.useLargeVarTypes", "true").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


def seen():
    level = spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    properties = spark._jvm.java.lang.System.getProperties()
    return {
        ("level", level),
        *spark.sparkContext.getConf().getAll(),
        *map(tuple, spark.sql("SET").collect()),
        *((str(each.getKey()), str(each.getValue())) for each in properties.entrySet()),
    }


spark.range(1).count()
before = seen()
told = {}
for name, app in {"given": ps.App(spark=spark), "active": ps.App()}.items():
    app.sql(open("app.sql").read())
    run = app.start(f"ckpt-{name}", output=f"out-{name}")
    run.await_end()
    told[name] = run.results("q").count()
    app.close()
told["changed"] = sorted(seen() ^ before)
told["alive"] = spark.range(3).count()
for name, asked in {"master": {"master": "local[7]"}, "conf": {"conf": {"spark.executor.memory": "3g"}}}.items():
    try:
        ps.App(**asked).session()
    except ps.errors.ConfigError as error:
        told[name] = error.fact
given = ps.App(spark=spark).sql(open("app.sql").read())
spark.stop()
try:
    given.start("ckpt-given", output="out-given")
except ps.errors.ConfigError as error:
    told["stopped"] = error.fact
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master; tests add the workers they need, and end them."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def worker(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, with a worker of two cores."""
    pid = cluster.add_worker(2)
    yield cluster
    cluster.end(pid)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "app.sql").write_text(APP)
    return tmp_path


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has nothing installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return str(folder / "bin" / "python")


def refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert "\tat " not in result.stderr
    assert result.stderr.startswith("error: ")
    for word in words:
        assert word in result.stderr


def script(place: Path, text: str) -> str:
    (place / "script.py").write_text(text)
    return str(place / "script.py")


# -- no workers


def test_without_workers(cluster: Cluster, place: Path) -> None:
    result = driver(*RUN, "--master", cluster.url, *SHORT, folder=place)
    refused(result, f"no worker of {cluster.url} has taken up this app", "1 free core(s) and 1g of memory")


@pytest.mark.slow
def test_ctrl_c_while_waiting_for_workers(cluster: Cluster, place: Path) -> None:
    told = (
        "import signal, sys, penstock.runtime.spark.master as master\n"
        "from penstock.app import cli\n"
        "asked = master.executors\n"
        "master.executors = lambda context: print('waiting', flush=True) or asked(context)\n"
        "cli.main()\n"
    )
    arguments = [sys.executable, script(place, told), *RUN[2:], "--master", cluster.url]
    with subprocess.Popen(
        arguments, cwd=place, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err


# -- workers that cannot do it


@pytest.mark.slow
def test_workers_without_penstock(worker: Cluster, place: Path, bare: str) -> None:
    nowhere = ("--conf", "spark.executorEnv.PYTHONPATH=/nowhere")
    result = driver(*RUN, "--master", worker.url, *nowhere, folder=place, PYSPARK_PYTHON=bare)
    refused(result, "workers cannot run this app", f"{bare} cannot import penstock", "install penstock for that Python")
    named = driver(*RUN, "--master", worker.url, *nowhere, "--conf", f"spark.pyspark.python={bare}", folder=place)
    assert named.stderr == result.stderr
    assert not list(place.rglob(".penstock-probe*"))


@pytest.mark.slow
def test_workers_without_that_python(worker: Cluster, place: Path) -> None:
    result = driver(*RUN, "--master", worker.url, folder=place, PYSPARK_PYTHON="/no/such/python")
    refused(result, "127.0.0.1: /no/such/python cannot be started", "set PYSPARK_PYTHON")


@pytest.mark.slow
def test_workers_that_see_other_folders(cluster: Cluster, place: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("no mounts of its own for a process here")
    for name in ("ckpt", "out", "in"):
        (place / name).mkdir()
    (place / "in" / "a.csv").write_text("ts,a\n2026-01-01T00:00:00,1\n2026-01-01T00:00:01,2\n")
    (place / "app.sql").write_text(
        f"CREATE STREAM s (ts TIMESTAMP, a INT) FROM 'csv:{place}/in' WATERMARK ts DELAY '1 second';\n"
        "CREATE QUERY q AS SELECT a, count(*) AS n FROM s [RANGE '5 seconds'] GROUP BY a;\n"
    )
    for hidden, words in {
        "ckpt": f"the checkpoint {place}/ckpt is not there, or not the driver's",
        "out": f"the output {place}/out/q/.penstock is not there, or not the driver's",
        "in": f"the input {place}/in/a.csv cannot be read: No such file or directory",
    }.items():
        mount = f'mount -t tmpfs none "{place}/{hidden}" && exec "$0" "$@"'
        pid = cluster.add_worker(1, ("unshare", "-m", "sh", "-c", mount))
        result = driver(*RUN, "--master", cluster.url, folder=place)
        cluster.end(pid)
        refused(result, words, "use a shared file system")


# -- a cluster that works


@pytest.mark.slow
def test_submitted_scripts_and_commands(worker: Cluster, place: Path) -> None:
    """Both write what a run on this machine does."""
    options = ["--master", worker.url, "--name", "wonder", "--conf", "spark.executor.memory=600m"]
    environ = environment() | {"PYSPARK_PYTHON": sys.executable}
    main = str(Path(SOURCES) / "penstock" / "__main__.py")
    told = {}
    for name, arguments in {"script": [script(place, SUBMITTED)], "command": [main, *RUN[2:]]}.items():
        (place / name).mkdir()
        (place / name / "app.sql").write_text(APP)
        result = subprocess.run(
            [str(BIN / "spark-submit"), *options, *arguments],
            env=environ, cwd=place / name, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        told[name] = json.loads(result.stdout.splitlines()[-1])
    assert told["script"] == {"master": worker.url, "name": "wonder", "memory": "600m", "exact": 40_000}
    assert told["command"]["accounting"]["exact"] == 40_000
    here = driver(*RUN, "--master", "process", folder=place)
    assert here.returncode == 0, here.stderr
    assert collect(place / "script" / "out") == collect(place / "command" / "out") == collect(place / "out")


@pytest.mark.slow
def test_parallelism_grows_with_the_cluster(cluster: Cluster, place: Path) -> None:
    first = cluster.add_worker(3)
    arguments = [sys.executable, script(place, GROWING), cluster.url]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    second = None
    with subprocess.Popen(arguments, cwd=place, env=environment(), **pipes) as process:  # type: ignore[call-overload]
        assert int(process.stdout.readline()) == 3
        second = cluster.add_worker(2)
        deadline, seen = time.monotonic() + 120, 3
        while seen != 5 and time.monotonic() < deadline:
            seen = int(process.stdout.readline())
        process.communicate("stop\n", timeout=120)
    cluster.end(second)
    cluster.end(first)
    assert seen == 5
    assert process.returncode == 0


# -- sessions of users


@pytest.mark.slow
def test_a_session_of_the_users_stays_as_it_is(place: Path) -> None:
    result = driver(script(place, OWN), folder=place, PYSPARK_PYTHON=sys.executable)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout.splitlines()[-1])
    assert told.pop("given") == told.pop("active") > 0
    assert told == {
        "changed": [],
        "alive": 3,
        "master": "this process has a Spark session already, with spark.master=local[2], not local[7]",
        "conf": "this process has a Spark session already, without spark.executor.memory, not 3g",
        "stopped": "the Spark session of this app was stopped",
    }
