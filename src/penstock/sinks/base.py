"""The contract of a sink: stage in tasks, publish by batch, idempotently.

`stage` runs in a merge task and writes a part of a batch's result where readers do not look; the driver puts
the list of staged parts into the manifest; `publish` makes them visible and may run again after a failure.
Delivery: exactly once.

To add a sink: a module with a class of this shape, and its scheme in `sinks.registry`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True)
class Owner:
    """A checkpoint whose results these are: its identity, and where it is."""

    id: str
    checkpoint: str


class Sink(Protocol):
    """Where a query's results go. Instances are pickled to tasks."""

    def prepare(self, owner: Owner, overwrite: bool) -> None:
        """Before the first batch of a run: claim the place for its owner, or refuse."""
        ...

    def check(self, owner: Owner) -> None:
        """Before a batch is committed: raise if the place is no longer the owner's."""
        ...

    def stage(self, table: pa.Table, batch: int, part: int, attempt: str) -> list[str]:
        """Write rows aside; returns [staged, final] names."""
        ...

    def publish(self, staged: str, final: str) -> None:
        """Make a staged part visible; doing it again does nothing."""
        ...

    def place(self) -> str:
        """Where the results are, for people."""
        ...

    def files(self) -> list[str]:
        """The Parquet files published so far, in order."""
        ...
