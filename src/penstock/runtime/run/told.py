"""What a run tells its log (`penstock.logs`): that it begins, each batch, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from logging import WARNING
from pathlib import Path
from typing import Any

from penstock.logical.query import QuerySet
from penstock.logs import tell
from penstock.runtime.batch.report import BatchReport, waiting_text
from penstock.state.data import to_data
from penstock.state.manifest import Manifest
from penstock.state.protocol import TableVersion


def tell_start(engine: str, app: QuerySet, checkpoint: Path, before: Manifest) -> None:
    queries, streams = sum(not query.hidden for query in app.queries), len(app.streams)
    begun = f", going on after batch {before.batch}" if before.batch >= 0 else ""
    text = f"run started ({engine}): {_counted(queries, 'query', 'queries')} on {_counted(streams, 'stream')}{begun}"
    tell(
        "start",
        f"{text}; checkpoint {checkpoint}",
        engine=engine,
        queries=queries,
        streams=streams,
        checkpoint=str(checkpoint),
        after_batch=before.batch,
    )


def tell_batch(report: BatchReport, manifest: Manifest) -> None:
    """An observer of batches."""
    seconds, behind = report.task_seconds + report.merge_seconds, report.behind
    lag = "" if behind is None else f", {behind:,} records behind" if behind else ", caught up"
    if report.arrivals:  # what is still to come is no backlog
        lag = f", {waiting_text(report.arrivals, report.late)}"
    closed = f"{_counted(report.closed, 'window')} closed"
    overdue = sum(one.overdue for one in report.late.values())
    closed += f" ({overdue:,} later than promised)" if overdue else ""
    tell(
        "batch",
        f"batch {report.batch}: {_counted(report.rows, 'record')}, {closed}, {seconds:.2f} s{lag}",
        batch=report.batch,
        records=report.rows,
        windows=report.closed,
        seconds=round(seconds, 6),
        behind=behind,
        watermarks=dict(report.watermarks),
        kept_bytes=report.kept,
        **_live(report),
    )
    if report.volume.compactions:
        text = f"batch {report.batch}: small segments merged into {report.volume.compacted:,} bytes"
        tell("compaction", text, batch=report.batch, bytes=report.volume.compacted, kept_bytes=report.kept)


def _live(report: BatchReport) -> dict[str, Any]:
    """What a log says besides where streams are live."""
    if not report.arrivals:
        return {}
    return {
        "arrivals": {name: to_data(one) for name, one in report.arrivals.items()},
        "delays": {name: to_data(one) for name, one in report.late.items()},
        "triaged": sum(task.account.stream.triaged for task in report.tasks),
    }


@dataclass
class TellTables:
    """An observer of batches: new versions of tables that are read again, and why one was not taken. `known` are those
    of the batch before."""

    known: Mapping[str, TableVersion]

    def __call__(self, report: BatchReport, manifest: Manifest) -> None:
        for name, version in report.offset.tables.items():
            before = self.known.get(name, version)
            facts: dict[str, Any] = {"batch": report.batch, "table": name, "digest": version.digest}
            if version.digest != before.digest:
                text = f"batch {report.batch}: table '{name}' was read again, its records see the new version"
                tell("table", text, **facts)
            if version.refused > before.refused:
                text = f"batch {report.batch}: table '{name}' was not taken as it is now: {version.problem}"
                hint = "; the version of before stays in force"
                tell("table", text + hint, WARNING, **facts, refused=version.refused, problem=version.problem)
        self.known = report.offset.tables


def tell_end(state: str, manifest: Manifest) -> None:
    """`state` is that of the run."""
    account: dict[str, Any] = {name: to_data(manifest.account.of(name)) for name in manifest.offset.streams}
    records = sum(entry["input"] for entry in account.values())
    done = f"{_counted(manifest.batch + 1, 'batch', 'batches')}, {_counted(records, 'record')}"
    text = f"run {state}: {done}, {_counted(manifest.windows, 'window')} closed"
    tell("end", text, state=state, batch=manifest.batch, records=records, windows=manifest.windows, accounting=account)


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
