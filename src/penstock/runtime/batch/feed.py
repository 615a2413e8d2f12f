"""Where a batch's references come from: what was decided about it, and the tasks that ran.

A *feed* stands between Spark's foreachBatch and the driver. The fused source (`runtime.batch.fused`) has run its tasks
when the driver is called, and what was decided stands in Spark's offset log; DataFrames (`runtime.batch.frames`) run
theirs inside, and log decisions in the checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame

from penstock.errors import RunError
from penstock.runtime.batch.job import END
from penstock.runtime.batch.offsets import Offset
from penstock.sources.base import Abilities, Position, Source
from penstock.sources.tail import reaching
from penstock.state.garbage import DECISIONS
from penstock.state.manifest import Manifest

Task = dict[str, Any]


class Feed(Protocol):
    """What differs between sources of penstock's own and DataFrames of the user's."""

    def decision(self, batch: int, before: Manifest) -> Offset:
        """What was decided about a batch; the same whenever it is asked."""
        ...

    def tasks(self, given: DataFrame | None, offset: Offset) -> list[Task]:
        """The references of the batch's tasks, in stream order."""
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
    """References that the fused source's tasks have yielded."""

    checkpoint: Path
    sources: dict[str, Source]
    until: str

    def decision(self, batch: int, before: Manifest) -> Offset:
        return read_offset(self.checkpoint, batch)

    def tasks(self, given: DataFrame | None, offset: Offset) -> list[Task]:
        assert given is not None
        return parsed([row.reference for row in given.collect()])

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


def done_mark(checkpoint: Path, batch: int) -> Path:
    """Says of a batch that Spark does not know that it is done."""
    return checkpoint / DECISIONS / f"{batch:08d}.done"


def read_offset(checkpoint: Path, batch: int) -> Offset:
    """The end offset of a batch from Spark's write-ahead log: a version, metadata, then one line per source."""
    lines = (checkpoint / "spark" / "offsets" / str(batch)).read_text().splitlines()
    offset: Offset = json.loads(lines[2])
    return offset


def parsed(references: list[str]) -> list[Task]:
    """References in the order of their tasks; an error that a task reported is raised here."""
    tasks = sorted((json.loads(text) for text in references), key=lambda task: int(task["task"]))
    for task in tasks:
        if "error" in task:
            raise RunError(*task["error"])
    return tasks
