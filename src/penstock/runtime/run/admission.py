"""What is refused before an engine is started: for `penstock check`, and first of all for a run.

Loads no kernels: a check takes no longer than reading the app.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import ConfigError
from penstock.logical.query import QuerySet
from penstock.logical.window import TIME
from penstock.runtime.batch.job import END, STOPPED
from penstock.runtime.engine.inputs import Inputs
from penstock.runtime.settings import RunSettings
from penstock.runtime.spark.conf import in_one_process
from penstock.sinks.base import Sink
from penstock.sinks.registry import check_claims, check_needs
from penstock.sinks.schema import open_query_sink
from penstock.state.files import local_path


def check_start(
    app: QuerySet,
    functions: Mapping[str, Any],
    settings: RunSettings,
    inputs: Inputs,
    with_spark: bool,
    master: str | None = None,
) -> None:
    """What can be refused before an engine is started: sinks, what needs Spark, and how long to run. `master` is the
    one of Spark, if that is known already."""
    _check_until(app, settings.until)
    if settings.checkpoint is None and with_spark and master is not None and not in_one_process(master):
        raise no_checkpoint()
    sinks = open_sinks(app, functions, settings.output, local_path(settings.checkpoint or ".", "checkpoint"))
    check_needs(sinks, with_spark)
    inputs.check_needs(with_spark)


def no_checkpoint() -> ConfigError:
    """What a run without a checkpoint is told where tasks run on other machines."""
    return ConfigError(
        "this run has no checkpoint, and a temporary folder of this machine is none that the workers see",
        "give --checkpoint DIR (App.start(checkpoint=...)), a folder that all machines share",
    )


def _check_until(app: QuerySet, until: str) -> None:
    """A run that goes on needs watermarks, or it would never close a window of time."""
    if until not in (END, STOPPED):
        raise ConfigError(f"--until {until} is not possible", f"use {END} or {STOPPED}")
    for query in app.queries:
        for stream in app.roots(query):
            if until == STOPPED and stream.delay is None and query.window.axis == TIME:
                raise ConfigError(
                    f"stream '{stream.name}' has no WATERMARK: until stopped, no window of '{query.name}' would close",
                    "add WATERMARK column DELAY '...' to the stream, or run until its end",
                )


def open_sinks(app: QuerySet, functions: Mapping[str, Any], output: str, checkpoint: Path) -> dict[str, Sink]:
    """The sinks of an app's queries, by query."""
    sinks = {
        query.name: open_query_sink(query, functions.get(query.name), output, checkpoint)
        for query in app.queries
        if not query.hidden
    }
    check_claims(sinks)
    return sinks
