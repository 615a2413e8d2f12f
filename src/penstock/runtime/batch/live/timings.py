"""What batches took, from the manifests that the driver writes, for the costs that the scheduler counts on."""

from __future__ import annotations

from penstock.runtime.batch.live.dues import MICROSECONDS
from penstock.state.manifest import Manifest
from penstock.triage.costs import Estimate, Timing, costs, measured, rows
from penstock.triage.lessons import ENOUGH, Lesson, lesson_rows
from penstock.triage.plan import Costs


class Measured:
    """The costs so far. A batch lasts from the moment at which it was decided to the one at which the next one is asked
    for; what lies between its tasks and its closing is what each batch costs, whatever is in it."""

    def __init__(self) -> None:
        self.known = Estimate()
        self._batch = -1  # the newest that was taken
        self._decided_at: int | None = None
        self._cold, self._learnt = True, 0
        self._lesson: Lesson | None = None

    def go_on(self, known: Estimate | None) -> None:
        """From what a run before this one knew."""
        if known is not None:
            self.known, self._learnt = known, ENOUGH

    @property
    def learning(self) -> bool:
        """Whether too little is known yet to plan with."""
        return self._learnt < ENOUGH

    @property
    def costs(self) -> Costs:
        return costs(self.known)

    def rows(self, most: int) -> int:
        """How many records a batch may read."""
        return rows(self.known, most)

    def lesson_rows(self, most: int, seconds: float) -> int:
        """The same of a batch that is to teach costs, and to last so long at most."""
        return min(most, lesson_rows(self._lesson, seconds))

    def decided(self, now: int) -> None:
        """A batch begins."""
        self._decided_at = now

    def take(self, before: Manifest | None, now: int) -> None:
        """Learn from the newest batch, once."""
        if before is None or before.timings is None or before.batch == self._batch or self._decided_at is None:
            return
        told, interval = before.timings, (now - self._decided_at) / MICROSECONDS
        self._batch, self._decided_at = before.batch, None
        if told.read:
            self._lesson = Lesson(told.read, told.tasks)
        if self._cold:  # its workers loaded what they run
            self._cold = not told.read
            return
        timing = Timing(
            told.read, told.left, told.instants, told.compacted, told.tasks, told.merge, told.seconds, interval
        )
        self.known = measured(self.known, timing)
        self._learnt += bool(told.read)
