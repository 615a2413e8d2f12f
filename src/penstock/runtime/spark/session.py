"""Start Spark with the settings that were found to matter.

A session of the user's works as well: only the daemon module (kernels compiled before workers fork) and the
two speed settings are lost if that session was built without `spark_settings`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext, accumulators
from pyspark.sql import SparkSession

import penstock
from penstock.errors import ConfigError
from penstock.runtime.spark import archive
from penstock.runtime.spark.gone import tells_of_it
from penstock.runtime.spark.java import ensure_java
from penstock.runtime.spark.workers import worker_python

ATTEMPTS = 4
JVM_OPTIONS = "spark.driver.extraJavaOptions"
_WORKERS = r"(\*|[1-9]\d*)"
MASTERS = rf"local(\[{_WORKERS}(\s*,\s*\d+)?\])?|local-cluster\[[\d, ]+\]|spark://.+|k8s://.+|yarn"


def spark_settings() -> dict[str, str]:
    """Spark properties for a session that runs penstock."""
    log = Path(__file__).with_name("log4j2.properties")
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Without it every Python task waits 40 ms for a delayed acknowledgement on its TCP socket.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": "/tmp",
        "spark.python.daemon.module": "penstock.runtime.spark.daemon",
        # The default manager forks readlink and chmod processes for local checkpoints.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.minBatchesToRetain": "10",
        # What Spark keeps in memory for its pages, which are switched off: by default of the last thousand jobs.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
        "spark.sql.streaming.pollingDelay": "5ms",
        # Most of a short run is spent warming up the JVM: its first compiler is enough for a driver.
        JVM_OPTIONS: f"-Dlog4j2.configurationFile=file:{log} -XX:TieredStopAtLevel=1",
    }


def local_retries(master: str) -> str:
    """`local[n]` gives a task one attempt; ask for as many as a cluster gives.

    >>> local_retries("local[*]"), local_retries("local[2,1]"), local_retries("spark://host:7077")
    ('local[*,4]', 'local[2,1]', 'spark://host:7077')
    """
    match = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{match[1] or 1},{ATTEMPTS}]" if match else master


def build_session(master: str = "local[*]", app_name: str = "penstock") -> SparkSession:
    """A session of penstock's own."""
    check_master(master)
    java_home = ensure_java()
    local = re.match(r"local(\[|$)", master) is not None
    python = worker_python() if local else sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", python)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    compiling = compile_kernels()
    builder = SparkSession.builder.master(local_retries(master)).appName(app_name)
    settings = spark_settings()
    if local:
        settings[JVM_OPTIONS] = " ".join((settings[JVM_OPTIONS], *archive.options(java_home)))
    for key, value in settings.items():
        builder = builder.config(key, value)
    _quiet_end()
    try:
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
    except Exception as error:  # of py4j or PySpark, which have no common root
        raise ConfigError(
            f"Spark could not be started on '{master}': {reason(error)}", "see that the master is right and Java runs"
        ) from error
    if compiling is not None:
        compiling.wait()
    threading.Thread(target=_wake_workers, args=(session,), name="penstock-wake", daemon=True).start()
    return session


def check_master(master: str) -> None:
    """Spark says what is wrong with a master in pages of Java, if at all."""
    if not re.fullmatch(MASTERS, master):
        raise ConfigError(
            f"'{master}' is no Spark master", "give one like local[*], local[4], spark://HOST:7077, k8s://URL or yarn"
        )


def reason(error: Exception) -> str:
    """The fact in a report of Spark's: the Java exception's message, else the first line.

    >>> reason(Exception("while calling x.\\n: org.apache.spark.SparkException: no such host\\n at y"))
    'no such host'
    """
    if tells_of_it(error):
        return "its JVM ended"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    java = next((line for line in lines if line.startswith(": ")), "")
    return java.removeprefix(": ").partition("Exception: ")[2] or lines[0]


def _wake_workers(session: SparkSession) -> None:
    """Start the Python daemon and a worker per core while the streaming query is still being set up."""
    with contextlib.suppress(Exception):  # only a head start: whatever is wrong will show in the first batch
        cores = session.sparkContext.defaultParallelism
        session.range(0, cores, 1, cores).mapInArrow(_unchanged, "id bigint").collect()


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _quiet_end() -> None:
    """A JVM that is killed is reported once, by penstock; PySpark's own threads would print tracebacks as well."""
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    logging.getLogger().addHandler(logging.NullHandler())
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        server.handle_error = lambda *_: None  # type: ignore[method-assign]


def fall_silent() -> None:
    """At the end of the process: Spark's own workers report with tracebacks that the JVM goes before them."""
    jvm = SparkContext._jvm
    if jvm is not None:
        with contextlib.suppress(Exception):  # it may be gone
            jvm.java.lang.System.err.close()


def compile_kernels() -> subprocess.Popen[bytes] | None:
    """Compile the kernels beside the start of the JVM, if this installation never did; workers load the result."""
    kernels = Path(penstock.__file__).parent / "kernels"
    if any(kernels.rglob("*.nbi")):
        return None
    return subprocess.Popen([sys.executable, "-c", "import penstock.runtime.task.task, penstock.runtime.merge.merge"])
