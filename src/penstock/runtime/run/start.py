"""Start a run: checkpoint, lease, sinks, sources, driver, and the loop of an engine that calls it.

open_run (app.json, lease, roll forward, sinks) ──► an engine ──► feed, BatchDriver ──► Engine.start ──► Run
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.clock import origin
from penstock.errors import ConfigError, StateError
from penstock.faults import reach
from penstock.logical.query import QuerySet
from penstock.runtime.batch.driver import BatchDriver, publish
from penstock.runtime.batch.held import Held, committed
from penstock.runtime.batch.job import STOPPED, Job
from penstock.runtime.batch.live.patience import Patience
from penstock.runtime.batch.report import Observer
from penstock.runtime.engine.base import SPARK, Engine
from penstock.runtime.engine.inputs import Inputs
from penstock.runtime.engine.places import places_of
from penstock.runtime.planning.planners import Replanning, RunPlanner
from penstock.runtime.run import active
from penstock.runtime.run.admission import no_checkpoint, open_sinks
from penstock.runtime.run.changes import Amending, adopt, check_changes
from penstock.runtime.run.given_up import TellGivenUp
from penstock.runtime.run.history import History
from penstock.runtime.run.promised import TellPromises
from penstock.runtime.run.run import Run
from penstock.runtime.run.told import TellTables, tell_batch, tell_start
from penstock.runtime.settings import RunSettings
from penstock.sinks.base import Owner, Sink
from penstock.sinks.schema import open_query_sink
from penstock.sources.base import Position, Source, kept_sources
from penstock.sources.live.preparing import prepared
from penstock.sources.tail import check_files, continued
from penstock.state import identity, versions
from penstock.state import lease as leases
from penstock.state import manifest as manifests
from penstock.state.files import local_path
from penstock.state.garbage import SEGMENTS
from penstock.state.identity import Identity
from penstock.state.manifest import Manifest, first_manifest
from penstock.triage.plan import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_ROWS = 8_192  # records: one more task takes as long as some thousand of them, however many queries there are


@dataclass
class Opened:
    """What a run holds before its engine has started: nothing that can be refused is left to be refused after that."""

    checkpoint: Path
    sinks: dict[str, Sink]
    places: dict[str, str]
    mine: Identity
    lease: leases.Lease
    held: Held
    manifest: Manifest
    sources: Mapping[str, Source]
    tables: Mapping[str, str]  # content of those that are read again
    prepared: bool = False  # the sinks


def open_run(engine: str, app: QuerySet, inputs: Inputs, functions: Mapping[str, Any], settings: RunSettings) -> Opened:
    """Take checkpoint and outputs for a run, or refuse to, before an engine is started. Who has it releases the lease.

    `functions` are sinks that are no URI, by query.
    """
    reach("driver.start")
    checkpoint = _open_checkpoint(settings.checkpoint)
    identity.check(checkpoint)
    sinks = open_sinks(app, functions, settings.output, checkpoint)
    places = {name: sink.place() for name, sink in sinks.items()}
    _check(checkpoint, app, inputs, places)
    mine = _identify(checkpoint, inputs, settings, engine)
    lease = leases.acquire(checkpoint, [os.getpid()])
    try:
        held = Held(checkpoint, Owner(mine.id, str(checkpoint)), lease)
        sources = continued(checkpoint, kept_sources(checkpoint, inputs.sources), settings.until == STOPPED)
        sources = prepared(app, sources)
        tables = _keep_tables(checkpoint, app)
        manifest = manifests.newest(checkpoint) or first_manifest()
        opened = Opened(checkpoint, sinks, places, mine, lease, held, manifest, sources, tables)
        if not any(sink.needs_spark() for sink in sinks.values()):
            _prepare(opened, settings, None)
        return opened
    except BaseException:
        lease.release()
        raise


def _keep_tables(checkpoint: Path, app: QuerySet) -> dict[str, str]:
    """The checkpoint keeps what queries join with: tasks read it there, and so does the next run. Returns what tables
    that are read again hold now, by name."""
    if not app.tables:
        return {}
    from penstock.runtime.expressions.folders import use_folder
    from penstock.runtime.expressions.lookups import newest_of, table_of
    from penstock.sources.arrow.kept import keep

    digests = {table.name: table.digest if table.refresh is None else newest_of(table.digest) for table in app.tables}
    for digest in digests.values():
        keep(checkpoint, table_of(digest), digest)
    use_folder(checkpoint)
    return {table.name: digests[table.name] for table in app.tables if table.refresh is not None}


def _prepare(opened: Opened, settings: RunSettings, session: SparkSession | None) -> None:
    """Publish what a killed run has committed, then claim all outputs."""
    checkpoint, manifest, sinks = opened.checkpoint, opened.manifest, opened.sinks
    # What is logged as done was published; consumers may have moved it away since.
    if manifest.batch >= 0 and not committed(checkpoint, manifest.batch):
        publish(manifest, sinks | _dropped_sinks(session, checkpoint, manifest, sinks, settings.output))
    for sink in sinks.values():
        sink.prepare(opened.held.owner, settings.overwrite)
    opened.prepared = True


def start(
    engine: Engine,
    opened: Opened,
    app: QuerySet,
    inputs: Inputs,
    settings: RunSettings,
    planner: RunPlanner,
    observers: Sequence[Observer],
    seconds: dict[str, float],
) -> Run:
    """Start the app's batches; returns at once."""
    begun = time.monotonic()
    checkpoint, sinks, places, mine = opened.checkpoint, opened.sinks, opened.places, opened.mine
    lease, held, manifest = opened.lease, opened.held, opened.manifest
    try:
        lease.hold_for(engine.processes())
        _bind(engine.session, sinks)
        if settings.checkpoint is None and engine.spread:
            raise no_checkpoint()
        if not opened.prepared:
            _prepare(opened, settings, engine.session)
        if engine.spread:
            engine.probe(places_of(checkpoint, sinks, inputs.sources))
        adopt(checkpoint, app, planner.planning, partial(planner.plans, app), places, manifest)
        history = History()
        job = Job(
            opened.sources,
            replace(settings.task, slots=mine.slots),
            str(checkpoint),
            settings.batch_rows,
            engine.executor.parallelism,
            settings.until,
            planner.sampling,
            tables=opened.tables,
            seed=mine.id,
            origin=origin(),
            overload=Mode(settings.overload),
            task_rows=TASK_ROWS if settings.parallelism is None else 1,  # a number that somebody asks for is kept to
        )
        feed = engine.feed(job, inputs)
        patience = Patience()
        all_observers: list[Observer] = [
            history,
            tell_batch,
            TellTables(manifest.offset.tables),
            TellPromises(held),
            TellGivenUp(held),
            *observers,
            Replanning(planner, held, patience),
        ]
        driver = BatchDriver(
            engine.executor, job.settings, feed, held, sinks, manifest, all_observers,
            tables=frozenset(job.tables.values()), origin=job.origin, patience=patience,
        )  # fmt: skip
        tell_start(engine.name, app, checkpoint, manifest)
        loop = engine.start(job, driver, inputs)
        seconds["startup"] = seconds.get("startup", 0.0) + time.monotonic() - begun
        amending = Amending(engine.session, held, planner, sinks, job.sources, feed.abilities, settings, job.tables)
        run = Run(engine, driver, loop, amending, history, seconds)
        active.note(run)
        return run
    except BaseException:
        lease.release()
        raise


def _open_checkpoint(uri: str | None) -> Path:
    path = local_path(uri, "checkpoint") if uri else Path(tempfile.mkdtemp(prefix="penstock-"))
    try:
        (path / SEGMENTS).mkdir(parents=True, exist_ok=True)
        (path / manifests.FOLDER).mkdir(exist_ok=True)
        (path / versions.FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"checkpoint {path} cannot be used: {error.strerror}", "choose another folder") from error
    return path


def _identify(checkpoint: Path, inputs: Inputs, settings: RunSettings, engine: str) -> Identity:
    """Whose checkpoint this is: written by its first run, compared by every later one."""
    mine = Identity(identity.FORMAT, uuid.uuid4().hex, inputs.fingerprints(), settings.task.slots, engine)
    found = identity.claim(checkpoint, mine)
    if found.engine != engine:
        theirs, other = ("with", "a Spark master") if found.engine == SPARK else ("without", "--master process")
        raise StateError(
            f"checkpoint {checkpoint} was made by a run {theirs} Spark, and holds what only such a run can go on from",
            f"give {other}, or use another checkpoint",
        )
    for name, fingerprint in mine.sources.items():
        if found.sources.get(name, fingerprint) != fingerprint:
            raise StateError(
                f"the source of stream '{name}' differs from the one that checkpoint {checkpoint} was made with",
                "restore it, or use another checkpoint",
            )
    return found


def _check(checkpoint: Path, app: QuerySet, inputs: Inputs, places: Mapping[str, str]) -> None:
    """Refuse what this checkpoint cannot go on with, before anything is touched."""
    number = versions.newest(checkpoint)
    if number is not None:
        check_changes(checkpoint, versions.load(checkpoint, number), app, places)
    manifest = manifests.newest(checkpoint)
    read = {name: Position(state.row) for name, state in (manifest.streams if manifest else {}).items()}
    check_files(checkpoint, inputs.sources, read)


def _dropped_sinks(
    session: SparkSession | None, checkpoint: Path, manifest: Manifest, sinks: Mapping[str, Sink], output: str
) -> dict[str, Sink]:
    """Sinks of queries that this app has no more, for what a killed run has committed but not published."""
    old = versions.load(checkpoint, manifest.offset.plan)
    found = {}
    for query in old.app.queries:
        lost = query.name not in sinks and not query.hidden
        if lost and not old.outputs[query.name].startswith(("function ", "writer ")):
            found[query.name] = open_query_sink(query, None, output, checkpoint)
    _bind(session, found)
    return found


def _bind(session: SparkSession | None, sinks: Mapping[str, Sink]) -> None:
    """Sinks that need a session are refused where there is none."""
    if session is not None:
        for sink in sinks.values():
            sink.bind(session)
