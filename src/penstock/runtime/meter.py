"""What merge tasks take, by stored relation and part: by a clock that is read where a part begins and where it ends.

Times are of the processor. Parts may stand in one another; each nanosecond counts for the innermost. A clock is read
some times for a query and item, never for a row.
"""

from __future__ import annotations

from time import thread_time_ns

from penstock.state.protocol import Work

# Parts of closing windows: rows read and merged, rows rolled up, rows of results made, and given to sinks.
PARTS = MERGE, ROLL, FINISH, SINK = "merge", "roll", "finish", "sink"

# The counter of rows that a part goes through.
ROWS = {MERGE: "merged", ROLL: "rolled", FINISH: "finished", SINK: "staged"}


class Meter:
    """Counters by relation. Nanoseconds have the name of their part; `count` has numbers of rows."""

    def __init__(self) -> None:
        self._work: dict[str, dict[str, int]] = {}
        self._now: tuple[str, str] | None = None
        self._since = 0

    def part(self, relation: str, part: str) -> _Within:
        """Time within is that of a part."""
        return _Within(self, (relation, part))

    def count(self, relation: str, **numbers: int) -> None:
        work = self._work.setdefault(relation, {})
        for name, number in numbers.items():
            work[name] = work.get(name, 0) + number

    def work(self) -> Work:
        return self._work

    def turn(self, now: tuple[str, str] | None) -> tuple[str, str] | None:
        """Another part begins; what it was before."""
        before, at = self._now, thread_time_ns()
        if before is not None:
            relation, part = before
            work = self._work.setdefault(relation, {})
            work[part] = work.get(part, 0) + at - self._since
        self._now, self._since = now, at
        return before


class _Within:
    """Some are entered for each query of an item: a class takes a third of what a generator does."""

    __slots__ = ("_before", "_meter", "_now")

    def __init__(self, meter: Meter, now: tuple[str, str]) -> None:
        self._meter, self._now = meter, now

    def __enter__(self) -> None:
        self._before = self._meter.turn(self._now)

    def __exit__(self, *exception: object) -> None:
        self._meter.turn(self._before)
