"""The summary of a run: the dict behind `run --json`, `Run.summary()` and the closing account."""

from __future__ import annotations

import itertools
from typing import Any

from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.work import totals
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.kinds.registry import EXACT
from penstock.sharing.plan import SharedPlan
from penstock.state.account import empty
from penstock.state.manifest import kept_bytes
from penstock.state.windows import listed, read_windows

NEWEST = 10  # windows of a query that a summary lists


def summarise(
    driver: BatchDriver,
    started_at: float,
    ended_at: float,
    seconds: dict[str, float],
    spark_version: str,
) -> dict[str, Any]:
    manifest, version = driver.manifest, driver.version
    account, reports = manifest.account, list(driver.reports)
    first = started_at if driver.forgotten_at is None else driver.forgotten_at
    stops = [first, *(report.finished_at for report in reports)]
    declared = [stream.name for stream in version.app.streams]
    plans = [version.plans[name] for name in declared]
    naive = sum(len(plan.relations) * entry_of(account, plan.stream.name)["input"] for plan in version.plans.values())
    return {
        "queries": {
            query.name: {
                **manifest.results.get(query.name, {"windows": 0, "rows": 0}),
                "path": driver.sinks[query.name].place(),
                "accounting": account["queries"].get(query.name, empty()),
                "last_windows": window_account(driver, query.name, NEWEST),
            }
            for query in version.app.queries
            if not query.hidden
        },
        "accounting": flat({name: entry_of(account, name) for name in declared}),
        "malformed": flat({name: account["malformed"].get(name, {}) for name in declared}),
        "malformed_places": flat({name: account["places"].get(name, {}) for name in declared}),
        "plan": {
            "configuration": " ".join(plan.configuration for plan in plans),
            "version": version.number,
            "relations": [relation for plan in version.plans.values() for relation in _relations(plan)],
        },
        "work": totals(manifest.work) | {"naive_hash_operations": naive},
        "state": {"bytes": kept_bytes(manifest), **manifest.volume},
        "seconds": {
            "total": ended_at - started_at + sum(seconds.values()),
            "startup": seconds.get("startup", 0.0),
            "planning": seconds.get("planning", 0.0),
            "per_batch": [b - a for a, b in itertools.pairwise(stops)],
            "tasks": [report.task_seconds for report in reports],
            "merge": [report.merge_seconds for report in reports],
        },
        "batches": [
            {
                "n": r.batch,
                "rows": r.rows,
                "offsets": r.offset,
                "watermark": r.watermark,
                "windows": r.closed,
                "bytes": r.bytes,
            }
            for r in reports
        ],
        "memory": driver.peaks,
        "ended": manifest.ended,
        "checkpoint": driver.job.checkpoint,
        "spark": {"version": spark_version},
    }


def window_account(driver: BatchDriver, query: str, most: int) -> list[dict[str, int]]:
    """The newest closed windows of a query: number, start and end, rows emitted, tuples exact and triaged."""
    closed = driver.manifest.results.get(query, {"windows": 0})["windows"]
    return listed(read_windows(driver.checkpoint, query, closed, most))


def entry_of(account: dict[str, Any], stream: str) -> dict[str, int]:
    found: dict[str, int] = account["streams"].get(stream, empty())
    return found


def flat(by_stream: dict[str, Any]) -> Any:
    """Of one stream, its own; of several, by name."""
    return next(iter(by_stream.values())) if len(by_stream) == 1 else by_stream


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
            "queries": [relation.query for relation in below],
        }
        for table, below in zip(plan.tables, plan.below, strict=True)
    ]
    fed = {query: table.name for table in plan.tables for query in table.queries}
    leaves = [
        {
            "table": EXACT,
            "query": relation.query,
            "fed_by": fed.get(relation.query, "stream"),
            "attributes": [part.component.text for part in relation.parts],
        }
        for relation in plan.relations
    ]
    return [*tables, *leaves]
