"""Sinks that hand a batch's rows to somebody once, as a whole: the base of `console` and `function`.

Rows are staged in the checkpoint. `publish` delivers them, then writes the number of the batch into
`CHECKPOINT/staged/QUERY/delivered`, then removes them: a batch that is marked is not delivered again, one whose
delivery was cut short is. Delivery: at least once. Batches are published in order, so one number is enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import ConfigError, RunError, StateError, why
from penstock.faults import reach
from penstock.sinks.base import Owner, Part, not_kept
from penstock.sinks.staging import clear_staged, part_name, stage_file
from penstock.state.files import replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = "staged"
DELIVERED = "delivered"


@dataclass(frozen=True)
class BatchSink(ABC):
    """Rows of one query, staged in `folder`, a folder of the checkpoint."""

    query: str
    folder: str
    schema: pa.Schema

    @abstractmethod
    def write(self, table: pa.Table, path: Path) -> None:
        """Write a staged part."""

    @abstractmethod
    def deliver(self, batch: int, staged: list[str]) -> None:
        """Hand over a batch, given its staged parts in order."""

    @abstractmethod
    def place(self) -> str:
        """Where the rows go."""

    def bind(self, spark: SparkSession) -> None:  # noqa: B027
        """Most need no session."""

    def prepare(self, owner: Owner, overwrite: bool) -> None:
        folder = Path(self.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for leftover in folder.iterdir():
                if leftover.name != DELIVERED:
                    leftover.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"folder {folder} cannot be used: {why(error)}", "choose another checkpoint") from error

    def check(self, owner: Owner) -> None:  # noqa: B027
        """The folder is the checkpoint's, which the lease guards."""

    def stage(self, table: pa.Table, batch: int, part: int, attempt: str) -> list[str]:
        staged = Path(self.folder) / f"{part_name(self.query, batch, part)}-{attempt}"
        stage_file(staged, self.folder, partial(self.write, table))
        return [str(staged), str(Path(self.folder) / DELIVERED)]

    def stage_empty(self, batch: int, attempt: str) -> list[str]:
        return []

    def publish(self, batch: int, parts: list[Part]) -> None:
        if not parts:
            return
        reach("sink.publish")
        if batch > self._delivered():
            staged = [path for path, _ in parts]
            for path in staged:
                if not Path(path).exists():
                    raise RunError(f"results {path} are gone", "start anew")
            self.deliver(batch, staged)
            reach("sink.rename")
        self._mark(batch)

    def _mark(self, batch: int) -> None:
        """Note that the batch is delivered, then forget its rows."""
        folder = Path(self.folder)
        try:
            if batch > self._delivered():
                replace(folder / DELIVERED, str(batch).encode())
            clear_staged(folder, batch)
        except OSError as error:
            fact = f"cannot note in {folder} that batch {batch} is delivered: {error.strerror}"
            raise RunError(fact, "mend the folder, then run again: the batch is delivered again") from error

    def _delivered(self) -> int:
        """The newest batch that was delivered; -1 before the first."""
        mark = Path(self.folder) / DELIVERED
        try:
            return int(mark.read_text())
        except FileNotFoundError:
            return -1
        except ValueError:
            raise StateError(f"{mark} is damaged", "write the number of the last delivered batch into it") from None

    def needs_spark(self) -> bool:
        return False

    def claim(self) -> str | None:
        return None

    def results(self, spark: SparkSession) -> DataFrame:
        raise not_kept(self.query, self.place())

    def table(self) -> pa.Table:
        raise not_kept(self.query, self.place())
