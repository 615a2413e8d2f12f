"""A checkpoint while a run holds it: whose it is, the lease, and the versions of its app.

The driver (`driver`), the planner (`replan`) and users who add or drop queries (`runtime.run.changes`) share it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from penstock.sinks.base import Owner
from penstock.state import garbage, versions
from penstock.state.garbage import DECISIONS
from penstock.state.lease import Lease
from penstock.state.versions import Version


@dataclass(frozen=True)
class Held:
    """Whoever changes the app holds `changing` meanwhile."""

    path: Path
    owner: Owner
    lease: Lease
    changing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def version(self) -> Version:
        """The app as it is now."""
        number = versions.newest(self.path)
        assert number is not None
        return versions.load(self.path, number)

    def amend(self, version: Version) -> None:
        """Change the app or its plans: the next batch that is decided takes that up."""
        self.lease.check()
        versions.store(self.path, version)

    def collect_garbage(self, batch: int, tables: frozenset[str] | None = None) -> None:
        """Delete what nobody needs once Spark has committed the newest batch; `tables` as `garbage.collect` has it."""
        if committed(self.path, batch):
            garbage.collect(self.path, batch, tables)


def done_mark(checkpoint: Path, batch: int) -> Path:
    """Says of a batch that Spark does not know that it is done."""
    return checkpoint / DECISIONS / f"{batch:08d}.done"


def committed(checkpoint: Path, batch: int) -> bool:
    """Whether Spark, or the checkpoint itself, has logged the batch as done: it is never replayed."""
    return (checkpoint / "spark" / "commits" / str(batch)).exists() or done_mark(checkpoint, batch).exists()
