"""What a run remembers of its batches, for its summary.

It observes the driver (`runtime.batch.report`); `runtime.run.summary` reads it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from penstock.runtime.batch.report import BatchReport, Peaks
from penstock.state.manifest import Manifest

REMEMBERED = 1_000  # batches of a run that its summary lists: the last ones


@dataclass
class History:
    """`forgotten_at`: when the last batch ended that is no more among the reports; `peaks` are of all batches."""

    reports: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    forgotten_at: float | None = None
    peaks: Peaks | None = None

    def __call__(self, report: BatchReport, manifest: Manifest) -> None:
        if len(self.reports) == REMEMBERED:
            self.forgotten_at = self.reports[0].finished_at
        self.reports.append(replace(report, tasks=()))  # counters of tasks are not remembered
        self.peaks = report.memory if self.peaks is None else self.peaks | report.memory
