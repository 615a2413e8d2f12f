"""The relations that an item reads, each merged once, whatever is then made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.merge import Share
from penstock.state.segments.groups import Groups

Array = np.ndarray


class MergedOnce:
    """Merged groups of an item's windows. `share` are those that a pass takes, `merge` reads and merges a relation."""

    def __init__(self, share: Share, merge: Callable[[StoredSource, Share], Groups]) -> None:
        self.share, self._merge = share, merge
        self._made: dict[tuple[str, frozenset[int] | None, str | None], list[tuple[Relation, Groups]]] = {}
        self._rolled: list[tuple[Groups, Groups, Array]] = []

    def made(self, source: StoredSource, by: Relation | None) -> list[tuple[Relation, Groups]]:
        """The relation itself, and all that was made of it so far; a pass takes what falls to it by the groups of
        another relation if one is given."""
        key = source.relation.name, source.storages, None if by is None else by.name
        if key not in self._made:
            self._made[key] = [(source.relation, self._merge(source, replace(self.share, by=by)))]
        return self._made[key]

    def rolled(self, rows: Groups, groups: Groups, at: Array) -> None:
        """Note that groups were rolled up from these rows, and which of them each row is in."""
        self._rolled.append((rows, groups, at))

    def place(self, rows: Groups, groups: Groups) -> Array | None:
        """Which of these groups each row is in, if they were rolled up from the rows."""
        return next((at for fine, coarse, at in self._rolled if fine is rows and coarse is groups), None)
