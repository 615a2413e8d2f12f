"""Reports of tasks made by hand."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.state.account import Entry, TaskAccount
from penstock.state.protocol import SegmentRef, TaskReport


def task_report(
    stream: str = "s",
    rows: int = 0,
    work: Mapping[str, Mapping[str, int]] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> TaskReport:
    """A task that took so many records and did this work."""
    account = TaskAccount(Entry(input=rows, exact=rows))
    return TaskReport(stream, SegmentRef("0.seg", 0, 0, {}), account, {}, None, None, None, work or {}, sizes or {})
