"""What was decided about a batch before its tasks ran: watermark, positions, where windows begin.

All of it comes from the offset (of DataFrames: from `decisions/N`), so a replay decides the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from penstock.logical.window import ROWS, Window
from penstock.state.protocol import Origin


@dataclass(frozen=True)
class Epoch:
    """Of one stream, before the batch: watermark, greatest time, time of the first record (None: none yet).

    `row` is the position of the task's first record. `origins` has, for each query that was added to a running
    app, the greatest time and the position at that moment: its first window starts after them. Where records have no
    order (not `ordered`: DataFrames, results), the first record is the least of the first batch, told by the driver.
    `joined` has the watermarks of joins, by side; `tables` the contents of tables that are read again, by name.
    `step` is the k of a task that reads one of 2^k records (`triage.picks`); `before` has for each record that it reads
    a time that MAX AHEAD counts from, because the records between them are not there to be looked at.
    """

    batch: int
    watermark: int | None = None
    greatest: int | None = None
    first: int | None = None
    row: int = 0
    origins: Mapping[str, Origin] = field(default_factory=dict)
    ordered: bool = True
    joined: Mapping[str, int | None] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    step: int = 0
    before: np.ndarray | None = field(default=None, repr=False, compare=False)

    def watermark_of(self, taker: str) -> int | None:
        """What is closed for a query, or for a side of a join: that is held back by the slowest of its streams."""
        return self.joined.get(taker, self.watermark)


def first_window(window: Window, origin: Origin | None) -> int | None:
    """The first window of an added query; None: all windows are its own."""
    if origin is None:
        return None
    after, row = origin
    if window.whole or window.counted:
        return None
    if window.axis == ROWS:
        return -(-row // window.slide)
    return None if after is None else after // window.slide + 1


def landmark_start(window: Window, first: int | None, origin: Origin | None) -> int | None:
    """Where a landmark window begins: at the slide of the stream's first record; None while there is none."""
    added = first_window(window, origin)
    if added is not None:
        return added * window.slide
    return None if first is None else first // window.slide * window.slide


def cutoff(window: Window, epoch: Epoch, query: str) -> int | None:
    """Records before this place on the window's axis are late: no window that is still open holds them."""
    origin = epoch.origins.get(query)
    if window.landmark:
        return landmark_start(window, epoch.first, origin)
    opened = None if window.axis == ROWS else window.first_open(epoch.watermark_of(query))
    if window.counted:  # before an instant that has had its result
        return None if opened is None else opened * window.slide + window.cut
    candidates = [k for k in (opened, first_window(window, origin)) if k is not None]
    return max(candidates) * window.slide if candidates else None
