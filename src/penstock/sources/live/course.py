"""The course of a range: the running greatest time of *all* its records, for tasks that read only some of them.

    index of the source ──► Course: that time where blocks end ──► in the task: at single records
                                                                     └──► reads the times of blocks only where it must

A record is too far ahead by the records before it in the stream, whoever reads these. Of most blocks their two ends say
enough: where the greatest time does not go on by more than MAX AHEAD, a time is too far ahead of the block's begin just
if it is too far ahead of the record before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.sources.base import Position, Source, Split
from penstock.sources.live.contract import LiveSource
from penstock.sources.live.times import LEAST, running

Array = np.ndarray
PIECE = 256  # blocks whose times are read at once


@dataclass(frozen=True)
class Course:
    """Edges between blocks, ascending, from the first record of a range to behind its last; the greatest time before
    each edge (before any usable time: the least int64); the stream's time column and its MAX AHEAD."""

    edges: Array
    greatest: Array
    time: str
    ahead: int | None

    def times(self, source: Source, first: int, last: int) -> Array:
        """The running greatest time at each record of the blocks [first, last), by reading them."""
        split = Split(Position(int(self.edges[first])), Position(int(self.edges[last])))
        return running(source.narrowed(split), split, self.time, self.ahead, int(self.greatest[first]))


def course_of(source: LiveSource, split: Split, time: str, ahead: int | None) -> Course:
    """Of these records, by the index of their source."""
    blocks, before = source.index(split.start, split.stop), source.reached(split.start)
    edges = np.concatenate([np.array([split.start], np.int64), blocks.stops])
    greatest = np.concatenate([np.array([LEAST if before is None else before], np.int64), blocks.greatest])
    return Course(edges, greatest, time, ahead)


def before_each(course: Course, source: Source, rows: Array) -> Array:
    """A time before each of these records, ascending, that tells which of them are too far ahead: of a record that is
    further than MAX AHEAD beyond it, and of no other. The least int64: nothing can be too far ahead."""
    assert course.ahead is not None
    block = np.searchsorted(course.edges, rows, "right") - 1
    found: Array = course.greatest[block]
    before, after = course.greatest[:-1], course.greatest[1:]
    unsure = (after != before) & ((before == LEAST) | (after - before > course.ahead))
    unsure &= np.bincount(block, minlength=len(before)) > 0
    for first, last in neighbours(np.flatnonzero(unsure)):
        start, (low, high) = int(course.edges[first]), np.searchsorted(rows, course.edges[[first, last]])
        times = np.concatenate([course.greatest[first : first + 1], course.times(source, first, last)])
        found[low:high] = times[rows[low:high] - start]
    return found


def neighbours(blocks: Array) -> Iterator[tuple[int, int]]:
    """Ascending blocks as [first, last) of those that are read at once.

    >>> list(neighbours(np.array([3, 4, 5, 9])))
    [(3, 6), (9, 10)]
    """
    if len(blocks):
        ends = np.flatnonzero((np.diff(blocks) > 1) | (blocks[1:] % PIECE == 0))
        for piece in np.split(blocks, ends + 1):
            yield int(piece[0]), int(piece[-1]) + 1
