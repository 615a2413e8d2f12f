"""Coarser panes: the same groups by 8, 64, 512 … panes together, so that a long window is made of few rows.

A window of 3,600 panes that slides by one would be merged from 3,600 panes each time. Beside its panes a block
therefore stores them merged by eights, by sixty-fours and so on (`FAN` to a power), and a window reads at most
two ranges of each level: what it reads is bounded by the groups it has, times the few levels.
"""

from __future__ import annotations

import numpy as np

from penstock.relations.relation import Relation
from penstock.runtime.merge.merge import regroup
from penstock.state.segments.groups import Groups
from penstock.state.segments.read import FAN

DEEP = 2 * FAN  # windows of fewer panes read them one by one


def coarsened(relation: Relation, groups: Groups, reach: int) -> list[Groups]:
    """The coarser levels of these groups; none where windows are short or the groups lie in few panes.

    `reach` is how many panes the longest window has that is made of them.
    """
    levels: list[Groups] = []
    most = reach
    while most >= DEEP and len(np.unique(groups.panes)) >= FAN:
        groups = regroup(relation, groups, groups.panes // FAN)
        levels.append(groups)
        most //= FAN
    return levels
