"""Spark settings that users give: `App(conf={...})`, `--conf K=V`. Nothing of Spark is loaded to refuse bad ones.

Who wins, key by key: what the user gives to penstock, what `spark-submit` and `spark-defaults.conf` say, what penstock
would have (`runtime.spark.session.spark_settings`), what Spark has by default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from penstock.errors import ConfigError

MASTER, NAME = "spark.master", "spark.app.name"
DEFAULT = "local[*]"
# A JVM has these from its start, or never.
OF_THE_JVM = (
    "spark.driver.memory",
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
)
_WORKERS = r"(\*|[1-9]\d*)"
LOCAL = rf"local(\[{_WORKERS}(\s*,\s*\d+)?\])?"
MASTERS = rf"{LOCAL}|local-cluster\[[\d, ]+\]|spark://.+|k8s://.+|yarn"
SIZES = (".memory", ".memoryOverhead", ".maxResultSize")
COUNTS = (".cores", ".cores.max", ".task.cpus")
FORM = "write it like --conf spark.executor.memory=4g"


def parse_conf(given: Iterable[str]) -> dict[str, str]:
    """The settings of `--conf K=V`, which may be repeated; of one key the last counts.

    >>> parse_conf(["spark.executor.memory=4g", "spark.x=a=b"])
    {'spark.executor.memory': '4g', 'spark.x': 'a=b'}
    """
    pairs = {}
    for setting in given:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--conf {setting} is not of the form K=V", FORM)
        pairs[key.strip()] = value
    return checked_conf(pairs)


def checked_conf(given: Mapping[str, object]) -> dict[str, str]:
    """The same settings as Spark takes them: names that begin with `spark.`, values as text."""
    settings = {}
    for key, value in given.items():
        if not isinstance(key, str) or not re.fullmatch(r"spark\.\S+", key):
            raise ConfigError(f"'{key}' is no Spark setting: their names begin with 'spark.'", FORM)
        if not isinstance(value, str | int | float):
            raise ConfigError(f"{key} is a {type(value).__name__}", "give text, a number, True or False")
        settings[key] = str(value).lower() if isinstance(value, bool) else str(value)
        _check_value(key, settings[key])
    return settings


def _check_value(key: str, value: str) -> None:
    """What the JVM would not start with, or Spark not say a clear word about."""
    if key.endswith(SIZES) and not re.fullmatch(r"\d+\s*([kmgtp]i?b?|b)?", value, re.IGNORECASE):
        raise ConfigError(f"{key}={value} is no size", f"write it like {key}=4g")
    if key.endswith(COUNTS) and not re.fullmatch(r"[1-9]\d*", value):
        raise ConfigError(f"{key}={value} is no count", f"write it like {key}=2")


def chosen_master(master: str | None, conf: Mapping[str, str]) -> str | None:
    """The master that the user asks for, by its own option or as a setting; None if neither says."""
    asked = conf.get(MASTER)
    if master is not None and asked is not None and master != asked:
        raise ConfigError(f"the master is given twice: '{master}', and {MASTER}={asked}", "leave one of them away")
    chosen = asked if master is None else master
    if chosen is not None:
        check_master(chosen)
    return chosen


def check_master(master: str) -> None:
    """Spark says what is wrong with a master in pages of Java, if at all."""
    if not re.fullmatch(MASTERS, master):
        raise ConfigError(
            f"'{master}' is no Spark master", "give one like local[*], local[4], spark://HOST:7077, k8s://URL or yarn"
        )


def in_one_process(master: str) -> bool:
    """Whether tasks run beside the driver: on its machine, with its files.

    >>> in_one_process("local[2,4]"), in_one_process("local-cluster[2,1,512]"), in_one_process("spark://host:7077")
    (True, False, False)
    """
    return re.fullmatch(LOCAL, master) is not None


def submitted() -> bool:
    """Whether `spark-submit` has started this process: its JVM is there already, with what it was told."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
