"""How far back the last records of a stream reach: all before that can go. Asked by the driver, of indexes alone."""

from __future__ import annotations

import numpy as np

from penstock.runtime.merge.items import FOREVER
from penstock.state.segments.read import Block


def first_needed(blocks: list[Block], beyond: int, count: int) -> int:
    """The first pane that the last `count` records before the pane `beyond` are in; all that comes is after them."""
    if not blocks:
        return -FOREVER
    panes = np.concatenate([block.panes for block in blocks])
    rows = np.concatenate([np.diff(block.starts) for block in blocks])
    before = panes < beyond
    numbers, index = np.unique(panes[before], return_inverse=True)
    later = np.cumsum(np.bincount(index, rows[before], len(numbers))[::-1])[::-1]
    enough = np.flatnonzero(later >= count)
    return int(numbers[enough[-1]]) if len(enough) else -FOREVER
