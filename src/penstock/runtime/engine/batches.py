"""Micro-batches one after the other, without Spark: what its streaming query does, by logs of the checkpoint.

    decisions/00000007.json    what was decided about batch 7: written before anything of it runs
    decisions/00000007.done    batch 7 is committed and published: it is never done again

A run that was killed finds either no decision about its next batch, and decides; or one, and does as it says; or the
manifest of a batch that is not marked as done, and publishes that again. Every batch comes out once, whenever the kill
came.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.batch.feed import FusedFeed
from penstock.runtime.batch.fused import FusedReader
from penstock.runtime.batch.held import committed, done_mark
from penstock.runtime.batch.job import END
from penstock.runtime.batch.offsets import decision_path, log_decision, read_decision
from penstock.state.files import put_if_absent
from penstock.state.manifest import Manifest
from penstock.state.protocol import Offset, TaskReport

POLL_SECONDS = 0.1  # how often a run that goes on looks for new records
LIVE_SECONDS = 0.01  # the same, where records arrive by the clock


@dataclass
class LoggedFeed(FusedFeed):
    """Batches that `reader` decides and this process logs; a batch is handed over as the offset before it."""

    reader: FusedReader

    def upcoming(self, before: Manifest) -> bool:
        """Whether there is a batch after this state now; it is decided then, once and for all."""
        path = decision_path(self.checkpoint, before.batch + 1)
        if path.exists():
            return True
        offset = self.reader.decided(before.offset)
        if offset == before.offset:
            return False
        log_decision(path, offset)
        return True

    def decision(self, batch: int, before: Manifest) -> Offset:
        return read_decision(decision_path(self.checkpoint, batch))

    def tasks(self, given: object, offset: Offset) -> tuple[list[TaskReport], Offset]:
        assert isinstance(given, Offset)
        return self.executor.run_tasks(self.reader.tasks(given, offset)), offset

    def finished(self, batch: int) -> None:
        put_if_absent(done_mark(self.checkpoint, batch), b"")


@dataclass
class MicroBatches:
    """The batches of a run; `step` by step, or all of them with `run`."""

    driver: BatchDriver[Any]
    feed: LoggedFeed
    until: str
    waiting: bool = False  # for more records than there are
    _stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until the sources end, or `stop`."""
        self.resume()
        pause = LIVE_SECONDS if self.feed.live else POLL_SECONDS
        while not self._stopping.is_set():
            if not self.step() and (self._over or self._stopping.wait(pause)):
                break

    @property
    def _over(self) -> bool:
        """Whether nothing will come any more; of live streams something may come later."""
        return self.until == END and (not self.feed.live or self.driver.manifest.ended)

    def resume(self) -> None:
        """Finish the batch that a killed run has committed, if it came no further."""
        newest = self.driver.manifest.batch
        if newest >= 0 and not committed(self.driver.held.path, newest):
            self.driver(None, newest)

    def step(self) -> bool:
        """The next batch; False if there is none now."""
        before = self.driver.manifest
        self.waiting = not self.feed.upcoming(before)
        if self.waiting:
            return False
        self.driver(before.offset, before.batch + 1)
        return True

    def stop(self) -> None:
        self._stopping.set()
