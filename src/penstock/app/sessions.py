"""The Spark session of an app: the user's, which is never stopped or changed, or one of penstock's own.

Loads pyspark when a session is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.runtime.spark.conf import DEFAULT, checked_conf, chosen_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROCESS = "process"  # a master that is none of Spark's


class Sessions:
    """One for each app and its twins; the session is started when it is first needed."""

    def __init__(self, given: SparkSession | None, master: str | None, conf: Mapping[str, Any] | None) -> None:
        self._conf = checked_conf(conf or {})
        self._given, self._master, self._session = given, master, given
        if given is not None:
            _check_given(given, self._conf)
        elif master == PROCESS:
            if self._conf:
                raise ConfigError(
                    "there is no Spark in a run with master 'process', and nothing to set",
                    "leave --conf (conf=) away, or give a Spark master",
                )
        else:
            self._master = chosen_master(master, self._conf)

    @property
    def with_spark(self) -> bool:
        return self._given is not None or self._master != PROCESS

    @property
    def master(self) -> str | None:
        """The master of Spark, as far as it is known before a session is there."""
        if not self.with_spark:
            return None
        return self._master if self._given is None else self._given.sparkContext.master

    def check(self) -> None:
        """Refuse a master that does not answer, and a machine without Java, before anything is touched."""
        if self._session is None and self.with_spark:
            from penstock.runtime.spark.java import ensure_java
            from penstock.runtime.spark.master import check_reachable

            check_reachable(self._master or DEFAULT)
            ensure_java()

    def get(self, tell: Callable[[str], None] = lambda phase: None) -> SparkSession:
        if not self.with_spark:
            raise ConfigError("there is no Spark in a run with master 'process'", "give a Spark master, like local[*]")
        from penstock.runtime.spark.session import build_session

        if self._session is None:
            self._session = build_session(self._master, self._conf, tell)
        elif self._given is not None:
            _check_alive(self._given)
        return self._session

    def close(self, wait: bool = True) -> None:
        """Let go of a session of penstock's own; one that was given stays. See `App.close`."""
        if self._given is None and self._session is not None:
            from penstock.runtime.spark.session import release

            release(self._session, wait)
            self._session = None


def _check_given(session: Any, conf: Mapping[str, str]) -> None:
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise ConfigError(
            "this is a session of Spark Connect, which has no driver that penstock could run in",
            "give a classic session: SparkSession.builder.config('spark.api.mode', 'classic').getOrCreate()",
        )
    if not hasattr(session, "sparkContext"):
        raise ConfigError(f"spark is a {type(session).__name__}, not a SparkSession", "write App(spark=session)")
    if conf:
        raise ConfigError(
            f"a session that is given is not changed: {', '.join(conf)}", "set that where the session is built"
        )


def _check_alive(session: SparkSession) -> None:
    if session.sparkContext._jsc is None or session.sparkContext._jsc.sc().isStopped():
        raise ConfigError("the Spark session of this app was stopped", "make a new one, and an App with it")
