"""Where a batch's reports come from: what was decided about it, and the tasks that ran.

A *feed* stands between the engine's loop (Spark's foreachBatch) and the driver. With Spark the fused source
(`runtime.batch.fused`) has run its tasks when the driver is called, and what was decided stands in Spark's offset log;
DataFrames (`runtime.batch.frames`), and all without Spark (`runtime.engine.batches`), run theirs inside, and log
decisions in the checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from penstock.runtime.batch.executor import Executor
from penstock.runtime.batch.job import END
from penstock.sources.base import Abilities, Position, Source
from penstock.sources.live.contract import live
from penstock.sources.tail import reaching
from penstock.state.data import from_data
from penstock.state.manifest import Manifest
from penstock.state.protocol import Offset, TaskReport

Given = TypeVar("Given", contravariant=True)  # a batch as the engine's loop hands it over


class Feed(Protocol[Given]):
    """What differs between sources of penstock's own and DataFrames of the user's."""

    def decision(self, batch: int, before: Manifest) -> Offset:
        """What was decided about a batch; the same whenever it is asked."""
        ...

    def tasks(self, given: Given | None, offset: Offset) -> tuple[list[TaskReport], Offset]:
        """The reports of the batch's tasks, in stream order, and the offset with what only they could tell."""
        ...

    def end_batch(self) -> bool:
        """Whether the end of the stream is a batch that the engine knows nothing of; then it is the next one."""
        ...

    def finished(self, batch: int) -> None:
        """The batch is committed and published."""
        ...

    def place(self, stream: str, row: int) -> str:
        """Where a record stands, for people."""
        ...

    def abilities(self, stream: str) -> Abilities:
        """What can be asked of a stream."""
        ...

    def total(self) -> int | None:
        """Records in all, where that is known."""
        ...


@dataclass
class FusedFeed:
    """Reports that the fused source's tasks have yielded."""

    executor: Executor[Any]
    checkpoint: Path
    sources: dict[str, Source]
    until: str

    @property
    def live(self) -> bool:
        """Whether records of some stream arrive by the clock."""
        return any(live(source) for source in self.sources.values())

    def decision(self, batch: int, before: Manifest) -> Offset:
        return read_offset(self.checkpoint, batch)

    def tasks(self, given: object, offset: Offset) -> tuple[list[TaskReport], Offset]:
        return self.executor.run_tasks(given), offset

    def end_batch(self) -> bool:
        """The end is a mark in the offset of the last batch."""
        return False

    def finished(self, batch: int) -> None:
        """Spark logs that itself."""

    def place(self, stream: str, row: int) -> str:
        at = Position(row)
        self.sources[stream] = reaching(self.checkpoint, stream, self.sources[stream], at)
        return self.sources[stream].place(at)

    def abilities(self, stream: str) -> Abilities:
        return self.sources[stream].abilities

    def total(self) -> int | None:
        return sum(source.rows() for source in self.sources.values()) if self.until == END else None


def read_offset(checkpoint: Path, batch: int) -> Offset:
    """The end offset of a batch from Spark's write-ahead log: a version, metadata, then one line per source."""
    path = checkpoint / "spark" / "offsets" / str(batch)
    return from_data(Offset, json.loads(path.read_text().splitlines()[2]), f"offset {path}")
