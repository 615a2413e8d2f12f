"""Waiting for others: a master that answers, workers that take up the app. Both end, with what to do.

Spark itself tries a master for a minute, and waits for workers for ever, without a word.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from pyspark import SparkContext

from penstock.errors import ConfigError, RunError

T = TypeVar("T")
Tell = Callable[[str], None]

CONNECT_SECONDS = 5.0
REGISTER_SECONDS = 30.0
POLL_SECONDS = 0.1
DYNAMIC = "spark.dynamicAllocation.enabled"
LEAST = (("cores", "1"), ("memory", "1g"))
PATIENCE = "spark.scheduler.maxRegisteredResourcesWaitingTime"
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}


def check_reachable(master: str) -> None:
    """Refuse a standalone master that nothing answers for; of several, one is enough."""
    if not master.startswith("spark://"):
        return
    found = []
    for place in master.removeprefix("spark://").split(","):
        host, colon, port = place.rpartition(":")
        if not colon or not port.isdecimal():
            raise ConfigError(f"'{master}' names no port", "write it like spark://HOST:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            found.append(f"{place}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise ConfigError(
        f"no Spark master answers at {master} ({'; '.join(found)})",
        "start it, or give the address that its web page shows; --master local[*] runs on this machine",
    )


def registered(master: str, begin: Callable[[], T], tell: Tell) -> T:
    """What `begin` gives, which registers with a master; in a thread, so that Ctrl-C and time can end the wait."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(begin())
        except BaseException as error:  # raised again in the thread that waits
            failure.append(error)

    thread = threading.Thread(target=work, name="penstock-register", daemon=True)
    thread.start()
    started, told = time.monotonic(), _news(tell)
    while thread.is_alive():
        thread.join(POLL_SECONDS)
        passed = time.monotonic() - started
        if passed > REGISTER_SECONDS and thread.is_alive():
            raise ConfigError(
                f"{master} does not take up this app: what answers there is no Spark master, or one of another version",
                "give the address that the master's web page shows, which is not that of the page itself",
            )
        if passed > 2:
            told(f"registering with {master}, {passed:.0f} s")
    if failure:
        raise failure[0]
    return outcome[0]


def await_executors(context: SparkContext, tell: Tell) -> None:
    """Wait until a worker has taken up the app."""
    patience = _seconds(setting(context, PATIENCE, "30s"))
    started, told = time.monotonic(), _news(tell)
    if executors(context) == 0 and setting(context, DYNAMIC, "false") == "true":
        _ask(context)
    while executors(context) == 0:
        passed = time.monotonic() - started
        if context._jsc is None or context._jsc.sc().isStopped():
            raise RunError(f"{context.master} has ended this app", "see the log of the master, then run again")
        if passed > patience:
            cores, memory = (setting(context, f"spark.executor.{what}", least) for what, least in LEAST)
            raise ConfigError(
                f"no worker of {context.master} has taken up this app in {passed:.0f} s",
                f"see on the master's web page that workers are alive with {cores} free core(s) and {memory} of "
                f"memory; to wait longer, set {PATIENCE}=5min",
            )
        told(f"waiting for workers of {context.master}, {passed:.0f} of {patience:.0f} s")
        time.sleep(POLL_SECONDS)


def executors(context: SparkContext) -> int:
    """How many executors there are now, without the driver."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def setting(context: SparkContext, key: str, default: str) -> str:
    """A setting of Spark's, by a single question to the JVM."""
    return str(context._jsc.sc().conf().get(key, default))


def _news(tell: Tell) -> Tell:
    """Tells only what it has not told just now."""
    last = [""]

    def told(phase: str) -> None:
        if phase != last[0]:
            last[0] = phase
            tell(phase)

    return told


def _ask(context: SparkContext) -> None:
    """Executors that are allocated when they are needed come for a job."""

    def work() -> None:
        context._jsc.sc().setLocalProperty("spark.job.description", "penstock: are there workers?")
        context._jsc.parallelize(context._jvm.java.util.ArrayList(), 1).count()  # type: ignore[union-attr]

    threading.Thread(target=work, name="penstock-ask", daemon=True).start()


def _seconds(text: str) -> float:
    """A duration as Spark writes it.

    >>> _seconds("30s"), _seconds("5min"), _seconds("1500ms")
    (30.0, 300.0, 1.5)
    """
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip())
    return float(match[1]) * UNITS.get(match[2], 1.0) if match else 30.0
