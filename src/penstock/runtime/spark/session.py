"""Start Spark with the settings that were found to matter.

A session of the user's works as well, and stays as it is: what it lacks of `spark_settings` costs time, not results.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext, accumulators
from pyspark.sql import SparkSession

import penstock
from penstock.errors import ConfigError
from penstock.runtime.spark import archive
from penstock.runtime.spark.conf import (
    DEFAULT,
    MASTER,
    NAME,
    OF_THE_JVM,
    check_master,
    checked_conf,
    chosen_master,
    in_one_process,
    submitted,
)
from penstock.runtime.spark.gone import tells_of_it
from penstock.runtime.spark.java import ensure_java
from penstock.runtime.spark.master import Tell, check_reachable, registered
from penstock.runtime.spark.workers import worker_python

ATTEMPTS = 4
JVM_OPTIONS = "spark.driver.defaultJavaOptions"
BARS = "spark.ui.showConsoleProgress"  # switched on for whatever has no name, unless it is off from the start
LEVEL = "spark.log.level"
# In the environment of workers that run functions of DataFrames. Spark keeps a daemon, and workers, for every
# environment; with this in all of them, the workers that have read a batch merge as well.
OF_FRAMES = ("SPARK_SIMPLIFIED_TRACEBACK", "1")
SHELL = "pyspark-shell"  # what Spark calls a session that has no name
# On other machines a daemon that loads penstock would not start where penstock is missing, and could not say so.
SPREAD = {"spark.python.daemon.module": "pyspark.daemon"}


def spark_settings() -> dict[str, str]:
    """Spark properties for a session that runs penstock."""
    log = Path(__file__).with_name("log4j2.properties")
    return {
        "spark.ui.enabled": "false",
        BARS: "false",
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


def build_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, tell: Tell = lambda phase: None
) -> SparkSession:
    """A session for penstock, until `release`: one of its own, or the one that this process has.

    A process has one Spark at most. Whoever started it, it is neither stopped nor changed here.
    """
    global _own
    settings = checked_conf(conf or {})
    asked = chosen_master(master, settings)
    check_reachable(asked or DEFAULT)
    java_home = ensure_java()
    active = SparkContext._active_spark_context
    if active is not None and active._jsc is not None:
        return _joined(active, asked, settings)
    _environment(asked, settings)
    compiling = compile_kernels()
    # PySpark loads it for its functions on Arrow; it takes a quarter of a second, and the JVM takes longer.
    threading.Thread(target=import_module, args=("pandas",), name="penstock-load", daemon=True).start()
    _quiet_end()
    known = _launch(asked, settings, java_home)
    chosen = known.get(MASTER, None) or DEFAULT
    try:
        if asked is None:
            check_reachable(chosen)
        session = _begin(chosen, known, tell)
        if _silent and not known.contains(LEVEL):
            session.sparkContext.setLogLevel("OFF")
    except ConfigError:
        raise
    except Exception as error:  # of py4j or PySpark, which have no common root
        raise ConfigError(
            f"Spark could not be started on '{chosen}': {reason(error)}",
            "see that the master and the settings are right, and Java runs",
        ) from error
    session.sparkContext.environment.setdefault(*OF_FRAMES)
    _own = _Own(session.sparkContext)
    _check_values(session, settings)
    if compiling is not None:
        compiling.wait()
    if in_one_process(chosen):  # elsewhere the probe of a run wakes them
        threading.Thread(target=_wake_workers, args=(session,), name="penstock-wake", daemon=True).start()
    return session


def _check_values(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Spark looks at the values of SQL settings when it uses them, unless they are set in a session."""
    for key, value in conf.items():
        try:
            if key.startswith("spark.sql."):
                session.conf.set(key, value)
        except Exception as error:
            if "CANNOT_MODIFY" in str(error):  # one that a session has from its start
                continue
            release(session)
            raise ConfigError(f"{key}={value}: {reason(error)}", "give a value that Spark takes") from error


def release(session: SparkSession, wait: bool = True) -> None:
    """Its holder needs the session no more: penstock's own ends with the last one; others go on. Without `wait`, one
    that is in this process's JVM alone is left to end with that: the JVM ends when this process has, and tidies up."""
    global _own
    if _own is not None and _own.context is session.sparkContext:
        _own.holders -= 1
        if _own.holders == 0:
            _own = None
            if wait or submitted() or not in_one_process(str(session.sparkContext.master)):
                _stop(session)


def _stop(session: SparkSession) -> None:
    """End it. PySpark asks its server of accumulators to end after all else; that looks up every half a second."""
    context = session.sparkContext
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is None:
        session.stop()
        return
    context._accumulatorServer = None  # type: ignore[assignment]
    ending = threading.Thread(target=server.shutdown, name="penstock-end", daemon=True)
    ending.start()
    session.stop()
    ending.join()


@dataclass
class _Own:
    """The Spark that penstock has started in this process, and how many hold it."""

    context: SparkContext
    holders: int = 1


_own: _Own | None = None
_silent = False  # the JVM works for penstock alone: its log, which only Spark writes to, may be switched off


def _joined(active: SparkContext, master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """The session that is there, if it is what was asked for."""
    for key, value in {**conf, **({} if master is None else {MASTER: master})}.items():
        found = active.getConf().get(key, None)
        if found not in (value, local_retries(value)):
            has = f"without {key}" if found is None else f"with {key}={found}"
            raise ConfigError(
                f"this process has a Spark session already, {has}, not {value}",
                "leave that setting away to run in it, or stop it first: a process can have one only",
            )
    if _own is not None and _own.context is active:
        _own.holders += 1
    return SparkSession.builder.getOrCreate()


def _environment(master: str | None, conf: Mapping[str, str]) -> None:
    """What Spark reads of the environment, where the user has not set it."""
    here = in_one_process(master or DEFAULT) and not submitted()
    python = worker_python() if here else sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", conf.get("spark.pyspark.python", python))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)
    if not submitted() and (master or DEFAULT).startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _launch(master: str | None, conf: Mapping[str, str], java_home: str) -> SparkConf:
    """Start the JVM, unless it is there; returns all settings of a session: see `runtime.spark.conf` for who wins."""
    global _silent
    ours, running = spark_settings(), SparkContext._gateway is not None or submitted()
    given = {**conf, **({} if master is None else {MASTER: master})}
    if not running:
        if in_one_process(master or DEFAULT):
            ours[JVM_OPTIONS] = " ".join((ours[JVM_OPTIONS], *archive.options(java_home)))
        first = SparkConf(loadDefaults=False)
        for key, value in {**{key: ours[key] for key in (*OF_THE_JVM, BARS) if key in ours}, **given}.items():
            first.set(key, value)
        try:
            SparkContext._ensure_initialized(conf=first)
        except Exception as error:
            with_what = f" with {', '.join(f'{key}={value}' for key, value in given.items())}" if given else ""
            hint = "mend what it says above; if it says nothing, it was killed: run again"
            raise ConfigError(f"Spark's JVM does not start{with_what}", hint) from error
    else:
        SparkContext._ensure_initialized()
    known = SparkConf()
    _silent = _silent or not running or submitted()
    if submitted():  # its JVM would say a lot before there is a session
        known.setIfMissing(LEVEL, "OFF")
    for key in OF_THE_JVM:
        if running and key in conf and known.get(key, None) != conf[key]:
            raise ConfigError(
                f"{key} cannot be set any more: the JVM of the driver runs already",
                "give it to spark-submit, or start with it in a new process",
            )
    if known.get(NAME, SHELL) == SHELL:
        known.set(NAME, "penstock")
    chosen = given.get(MASTER) or known.get(MASTER, None) or DEFAULT
    for key, value in {**ours, **(SPREAD if not in_one_process(chosen) else {})}.items():
        known.setIfMissing(key, value)
    for key, value in given.items():
        known.set(key, value)
    check_master(chosen)
    return known.setMaster(chosen if submitted() else local_retries(chosen))


def _begin(master: str, settings: SparkConf, tell: Tell) -> SparkSession:
    begin = SparkSession.builder.config(conf=settings).getOrCreate
    return begin() if in_one_process(master) else registered(master, begin, tell)


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
        context = session.sparkContext
        # Not by a DataFrame: Spark would first load all that plans its queries.
        context.parallelize(range(context.defaultParallelism), context.defaultParallelism).foreachPartition(_nothing)


def _nothing(items: Iterable[int]) -> None:
    """What a worker is woken for."""


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
    return subprocess.Popen([sys.executable, "-m", "penstock.kernels.ahead"])
