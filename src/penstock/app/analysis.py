"""Run an app for its counters alone: `explain --analyze`.

    Analysis(app) ──► start (its own checkpoint and results, in a temporary folder) ──► counters of tasks ──► explained

Nothing that the app names is written to: its queries run without their sinks. Plans stay as they were made at first:
what is measured is what is explained.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.monitor.analyze import measure
from penstock.monitor.analyze_joins import measure_joins
from penstock.runtime.settings import TaskSettings
from penstock.sharing.explain import explain_plan
from penstock.sharing.options import AUTO, OFF

if TYPE_CHECKING:
    from penstock.app.api import App
    from penstock.runtime.batch.report import BatchReport, Observer
    from penstock.runtime.run.run import Run
    from penstock.state.manifest import Manifest
    from penstock.state.protocol import JoinCounts, TaskReport, Work


class Analysis:
    """One run of `app` with `options` (see `App.start`), from `start` until the `with` block ends."""

    def __init__(self, app: App, options: dict[str, Any]) -> None:
        self._app, self._twin, self._options = app, app.discarding(), options
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-explain-", ignore_cleanup_errors=True)
        self._tasks: list[TaskReport] = []
        self._joins: list[JoinCounts] = []
        self._closing: list[Work] = []

    def __enter__(self) -> Analysis:
        return self

    def __exit__(self, *exception: object) -> None:
        self._folder.cleanup()

    def start(
        self,
        checkpoint: str | None = None,
        *,
        listener: Observer = lambda report, manifest: None,
        on_phase: Callable[[str], None] = lambda phase: None,
    ) -> Run:
        """As `App.start`; the checkpoint is always one of its own."""

        def gather(report: BatchReport, manifest: Manifest) -> None:
            self._tasks += report.tasks
            self._joins += report.joins
            self._closing += report.closing
            listener(report, manifest)

        folder = Path(self._folder.name)
        settings = self._options | {"output": str(folder / "results"), "replan": OFF}
        run = self._twin.start(str(folder / "checkpoint"), listener=gather, on_phase=on_phase, **settings)
        self._plans, self._rows = run.plans, self._twin.rows()
        return run

    @property
    def with_spark(self) -> bool:
        return self._twin.with_spark

    def close(self, wait: bool = True) -> None:
        """Stop Spark; as `App.close`."""
        self._twin.close(wait)

    def explained(self) -> list[dict[str, Any]]:
        """The plans that ran, predicted and measured."""
        asked, slots = self._options.get("plan") or AUTO, TaskSettings().slots
        joins = measure_joins(self._twin.query_set(opened=False), self._plans, self._tasks, self._joins)
        return [
            explain_plan(
                plan, self._rows.get(plan.stream.name), slots, asked, measure(plan, self._tasks, joins, self._closing)
            )
            for plan in self._plans.values()
        ]
