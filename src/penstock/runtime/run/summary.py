"""The summary of a run: the dict behind `run --json`, `Run.summary()` and the closing account.

It is made of the newest manifest, the sinks and the history of the run; it changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from penstock.logical.query import Query, side_name
from penstock.runtime.batch.report import Peaks
from penstock.runtime.run.history import History
from penstock.runtime.run.lateness import shown_arrivals, shown_delays
from penstock.runtime.work import totals
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.plan import SharedPlan
from penstock.sinks.base import Sink
from penstock.state.account import Account, Entry
from penstock.state.data import to_data
from penstock.state.manifest import Manifest
from penstock.state.protocol import Results, Volume
from penstock.state.versions import Version
from penstock.state.windows import listed

NEWEST = 10  # windows of a query that a summary lists
T = TypeVar("T")


@dataclass(frozen=True)
class RunTimes:
    """When a run began and ended, by the monotonic clock, and what came before it: seconds of `planning`, `startup`."""

    started_at: float
    ended_at: float
    phases: Mapping[str, float]


def summarise(
    checkpoint: Path,
    version: Version,
    manifest: Manifest,
    sinks: Mapping[str, Sink],
    history: History,
    clock: RunTimes,
    spark_version: str | None,
) -> dict[str, Any]:
    account, reports = manifest.account, list(history.reports)
    first = clock.started_at if history.forgotten_at is None else history.forgotten_at
    stops = [first, *(report.finished_at for report in reports)]
    declared = [stream.name for stream in version.app.streams]
    plans = [version.plans[name] for name in declared]
    return {
        "queries": {
            query.name: {
                **to_data(manifest.results.get(query.name, Results())),
                "path": sinks[query.name].place(),
                "accounting": query_account(query, account),
                "last_windows": window_account(checkpoint, manifest, query.name, NEWEST),
                **_delays(checkpoint, manifest, query),
            }
            for query in version.app.queries
            if not query.hidden
        },
        "accounting": flat({name: to_data(account.of(name)) for name in declared}),
        "malformed": flat({name: dict(account.malformed.get(name, {})) for name in declared}),
        "malformed_places": flat({name: _places(account, name) for name in declared}),
        "plan": {
            "configuration": " ".join(plan.configuration for plan in plans),
            "version": version.number,
            "relations": [relation for plan in version.plans.values() for relation in _relations(plan)],
        },
        "work": totals(manifest.work) | {"naive_hash_operations": _naive(version, account)},
        "state": {"bytes": manifest.kept_bytes, **to_data(manifest.volume)},
        "seconds": {
            "total": clock.ended_at - clock.started_at + sum(clock.phases.values()),
            "startup": clock.phases.get("startup", 0.0),
            "planning": clock.phases.get("planning", 0.0),
            "per_batch": [b - a for a, b in itertools.pairwise(stops)],
            "tasks": [report.task_seconds for report in reports],
            "merge": [report.merge_seconds for report in reports],
        },
        "batches": [
            {
                "n": r.batch,
                "rows": r.rows,
                "offsets": to_data(r.offset),
                "watermark": shown_watermark(r.watermarks),
                "windows": r.closed,
                "bytes": shown_volume(r.volume, r.kept),
            }
            for r in reports
        ],
        "memory": {} if history.peaks is None else _shown_memory(history.peaks),
        "live": shown_arrivals(reports[-1] if reports else None),
        "tables": {name: to_data(table) for name, table in manifest.offset.tables.items()},
        "ended": manifest.ended,
        "checkpoint": str(checkpoint),
        "spark": {"version": spark_version},
    }


def _delays(checkpoint: Path, manifest: Manifest, query: Query) -> dict[str, Any]:
    """How late its results came, if its streams are live."""
    found = shown_delays(checkpoint, manifest, query)
    return {} if found is None else {"delays": found}


def query_account(query: Query, account: Account) -> dict[str, Any]:
    """The account of a query; of a join by side, where it has several."""
    if query.join is None:
        return dict(to_data(account.queries.get(query.name, Entry())))
    sides = {side.alias: account.queries.get(side_name(query.name, side.alias), Entry()) for side in query.join.streams}
    return flat({alias: dict(to_data(entry)) for alias, entry in sides.items()})


def window_account(checkpoint: Path, manifest: Manifest, query: str, most: int) -> list[dict[str, int | bool]]:
    """The newest closed windows of a query: number, start and end, rows emitted, records exact and triaged."""
    closed = manifest.results.get(query, Results()).windows
    return listed(checkpoint, query, closed, most)


def flat(by_stream: dict[str, T]) -> T | dict[str, T]:
    """Of one stream, its own; of several, by name."""
    return next(iter(by_stream.values())) if len(by_stream) == 1 else by_stream


def shown_watermark(watermarks: Mapping[str, int | None]) -> int | dict[str, int | None] | None:
    """Of the only declared stream; of several, by name; None before the first batch."""
    return flat(dict(watermarks)) if watermarks else None


def shown_volume(volume: Volume, kept: int) -> dict[str, int]:
    """Bytes that were moved, and what is kept now."""
    return to_data(volume) | {"kept": kept}


def _shown_memory(peaks: Peaks) -> dict[str, int]:
    return {
        "baseline_bytes": peaks.baseline,
        "merge_peak_bytes": peaks.merge_peak,
        "merge_above_baseline_bytes": peaks.merge_above,
        "lfta_peak_bytes": peaks.lfta_peak,
        "lfta_above_baseline_bytes": peaks.lfta_above,
    }


def _places(account: Account, stream: str) -> dict[str, list[str]]:
    return {reason: list(places) for reason, places in account.places.get(stream, {}).items()}


def _naive(version: Version, account: Account) -> int:
    """Hash operations without sharing: every record probes a table of every query, and of times of panes of rows."""
    tables = {name: len(p.readers) + sum(not r.booked for r in p.relations) for name, p in version.plans.items()}
    return sum(count * account.of(name).input for name, count in tables.items())


def _relations(plan: SharedPlan) -> list[dict[str, Any]]:
    """Tables and leaves, and what feeds each."""
    names = [table.name for table in plan.tables]
    tables = [
        {
            "table": table.kind,
            "name": table.name,
            "fed_by": "stream" if table.parent == STREAM else names[table.parent],
            "buckets": table.buckets,
            "replacement": table.policy,
            "queries": [r.query for relation in below for r in plan.stored.reading(relation.name)],
        }
        for table, below in zip(plan.tables, plan.below, strict=True)
    ]
    fed = {relation: table.name for table in plan.tables for relation in table.leaves}
    leaves = [
        {
            "table": relation.table,
            "relation": relation.name,
            "query": plan.stored.labels[relation.name],
            "queries": [reader.query for reader in plan.stored.reading(relation.name)],
            "fed_by": fed.get(relation.name, "stream"),
            "attributes": [part.component.text for part in relation.parts],
        }
        for relation in plan.relations
    ]
    return [*tables, *leaves]
