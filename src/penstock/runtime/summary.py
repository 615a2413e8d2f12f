"""The summary of a run: the dict behind `run --json`, `Run.summary()` and the closing account."""

from __future__ import annotations

import itertools
from typing import Any

from penstock.runtime.driver import BatchDriver
from penstock.sinks.base import Sink


def summarise(
    driver: BatchDriver,
    sinks: dict[str, Sink],
    started_at: float,
    ended_at: float,
    seconds: dict[str, float],
    version: str,
) -> dict[str, Any]:
    manifest, plan = driver.manifest, driver.job.plan
    account, reports = manifest.account, driver.reports
    stops = [started_at, *(report.finished_at for report in reports)]
    operations = sum(work["probes"] for work in manifest.work.values())
    return {
        "queries": {
            name: {
                "windows": result["windows"],
                "rows": result["rows"],
                "path": sinks[name].place(),
                "accounting": account["queries"][name],
            }
            for name, result in manifest.results.items()
        },
        "accounting": account["stream"],
        "malformed": account["malformed"],
        "plan": {
            "configuration": plan.configuration,
            "relations": [
                {"query": r.query, "attributes": [str(p.component) for p in r.parts], "table": table_kind(r.buckets)}
                for r in plan.relations
            ],
        },
        "work": {
            "probes": operations,
            "evictions": sum(work["evictions"] for work in manifest.work.values()),
            "hash_operations": operations,
            "naive_hash_operations": len(plan.relations) * account["stream"]["input"],
        },
        "seconds": {
            "total": ended_at - started_at + sum(seconds.values()),
            "startup": seconds.get("startup", 0.0),
            "planning": seconds.get("planning", 0.0),
            "per_batch": [b - a for a, b in itertools.pairwise(stops)],
            "tasks": [report.task_seconds for report in reports],
            "merge": [report.merge_seconds for report in reports],
        },
        "batches": [
            {"n": r.batch, "rows": r.rows, "offsets": r.offset, "watermark": r.watermark, "windows": r.closed}
            for r in reports
        ],
        "memory": {name: max(r.memory[name] for r in reports) for name in (reports[0].memory if reports else {})},
        "ended": manifest.ended,
        "checkpoint": driver.job.checkpoint,
        "spark": {"version": version},
    }


def table_kind(buckets: int) -> str:
    return f"direct({buckets}) + exact" if buckets else "exact"
