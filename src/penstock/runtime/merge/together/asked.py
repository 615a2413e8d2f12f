"""Which windows close of queries whose windows are the same, and which rows of blocks those are.

    blocks of a relation ──► their panes ──► met before? ──► the windows, and where they are in each block

Relations of one stream mostly have groups in the same panes: what follows from panes alone is asked once for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from penstock.runtime.merge.due import due, window_bounds
from penstock.runtime.merge.items import Due, Reading, Wanting
from penstock.state.segments.read import Block

Array = np.ndarray


@dataclass
class Windows:
    """Windows that close; by panes, where their first and their last rows are in a block that has these."""

    numbers: Array
    low: Array
    high: Array
    places: dict[bytes, tuple[Array, Array]] = field(default_factory=dict)

    def rows(self, blocks: Iterable[Block]) -> Array:
        """Rows of each window."""
        rows = np.zeros(len(self.numbers), np.int64)
        for block in blocks:
            panes = block.panes.tobytes()
            if panes not in self.places:
                self.places[panes] = np.searchsorted(block.panes, self.low), np.searchsorted(block.panes, self.high)
            first, beyond = self.places[panes]
            rows += np.maximum(block.starts[beyond] - block.starts[first], 0)
        return rows


@dataclass
class Asked:
    """Of windows [first, beyond); `last` is the last one of a landmark query whose stream has ended."""

    first: int
    beyond: int
    last: int | None
    _met: dict[tuple[bytes, ...], Windows] = field(default_factory=dict)

    def due(self, reading: Reading, wanting: tuple[Wanting, ...], blocks: Iterable[Block]) -> Due:
        """The windows that are not empty of queries that are read together."""
        found = list(blocks) if self.first < self.beyond else []
        panes = tuple(block.panes.tobytes() for block in found)
        windows = self._met.get(panes)
        # Coarse levels have panes of their own, and so have relations of finer ones.
        if windows is not None and all(len(b.records) == 1 and _plain(reading, b) for b in found):
            return Due(reading, wanting, windows.numbers, windows.rows(found), tuple(found))
        made = due(reading, wanting, found, self.first, self.beyond, self.last)
        if windows is None and all(_plain(reading, block) for block in found):
            self._met[panes] = Windows(made.windows, *window_bounds(reading.window, made.windows))
        return made


def _plain(reading: Reading, block: Block) -> bool:
    """Whether a block has the panes of the windows themselves."""
    return reading.over(block.relation) is reading.window
