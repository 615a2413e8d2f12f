"""Records that nobody promises anything about wait as long as their source keeps them, and are then given up.

    clock ──► less `kept` ──► the first record that is still kept ──► those before it: a range of which nothing is read

The range stands in the offset as any other. Its records are triaged in the account of the queries that wanted them.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.runtime.batch.live.dues import Seen
from penstock.sources.base import Position
from penstock.sources.live.contract import source_time
from penstock.triage.picks import DROP
from penstock.triage.plan import Range


def kept_from(seen: Seen, promised: bool) -> Position:
    """The first record that can be read still; of a stream with promises all can that no batch has taken."""
    kept = seen.source.kept_for
    if promised or kept is None or seen.now - kept <= seen.clock.wall:
        return seen.start
    return max(seen.start, min(seen.arrived, seen.source.row_at(source_time(seen.clock, seen.now - kept))))


def with_given_up(start: Position, kept: Position, ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Ranges from `start` on, less what comes before `kept`.

    >>> with_given_up(0, 5, [(3, 0), (9, 0)])
    ((5, 63), (9, 0))
    """
    if kept <= start:
        return tuple(ranges)
    return (int(kept), DROP), *(one for one in ranges if one[0] > kept)
