"""The relations that an item reads, each read or merged once, whatever is then made of it.

Rows of a relation that some query is finished from are merged into groups; so are those of passes. Where all queries
are rolled up, rows are rolled up as they are stored: a roll-up merges equal ones anyway. Of windows that overlap that
is done pane by pane: what comes of it is mostly much less, and is then merged into windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from penstock.logical.query import Attribute
from penstock.relations.closing import rolls_up_in_windows
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.merge import Merge
from penstock.runtime.merge.rolling.passes import Telling
from penstock.runtime.merge.rolling.rolling import Rolling
from penstock.runtime.merge.shares import Share
from penstock.runtime.meter import MERGE, Meter
from penstock.state.segments.groups import Groups

Array = np.ndarray
REMEMBERED = 256  # items, by the relations that they ask for: a name is a digest of what that is
InWindows = Callable[[Relation, Groups], Groups]


@dataclass(frozen=True)
class Stacked:
    """Rows of a relation as they are stored, by window; or by pane, if there are `windows`, which make groups by window
    of groups by pane."""

    merge: Merge
    windows: InWindows | None = None


@dataclass
class Rows:
    """Rows that coarser groups can be made of: groups of a relation, or what is stored of it, unmerged."""

    relation: Relation
    groups: Groups | None
    stored: Stacked | None = None
    coded: set[tuple[object, Attribute]] = field(default_factory=set)

    def __len__(self) -> int:
        return self.rolling.rows if self.groups is None else len(self.groups)

    def code(self, wanted: Relation) -> int:
        """How many attributes have no codes yet that this needs; now they have. What is chosen of the rows is coded by
        itself."""
        before = len(self.coded)
        self.coded.update((wanted.choice.where, one) for one in wanted.attributes)
        return len(self.coded) - before

    @cached_property
    def rolling(self) -> Rolling:
        if self.stored is not None:
            return Rolling(self.relation, self.stored.merge)
        assert self.groups is not None
        pieces = [Piece(GroupRows(self.groups), self.groups.panes)]
        return Rolling(self.relation, Merge(self.relation, pieces, self.groups.dictionaries), given=self.groups.coded)

    @property
    def windows(self) -> InWindows | None:
        """What is left to do with groups that were rolled up from these."""
        return None if self.stored is None else self.stored.windows


class MergedOnce:
    """Rows of an item's windows. `share` are those that a pass takes, `merge` reads and merges a relation, `stacked`
    reads it without merging, where that is worth it. `placing`: somebody will ask where rows have gone. `asked` are all
    relations that groups will be asked of, each as often as it will be; None: nobody knows. `telling` says what tells
    the rows of a pass, where queries may have that in common. `meter` counts what all that takes."""

    def __init__(
        self,
        share: Share,
        merge: Callable[[StoredSource, Share], Groups],
        stacked: Callable[[StoredSource, Share], Stacked | None] | None = None,
        placing: bool = False,
        asked: Sequence[Relation] | None = None,
        telling: Telling | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.meter = meter or Meter()
        self.share, self._merge, self._stacked, self.placing = share, merge, stacked, placing
        self._telling = telling
        self._again = None if asked is None else made_again(asked)
        self._made: dict[tuple[str, frozenset[int] | None, str | None], list[Rows]] = {}
        self._rolled: list[tuple[Groups, Groups, Array]] = []
        self._told: dict[str, Relation] = {}

    def merged(self, source: StoredSource, by: Relation | None) -> Groups:
        """The groups of a relation; a pass takes what falls to it by the groups of another relation if one is given."""
        made = self._made.setdefault(self._key(source, by), [])
        if not made or made[0].groups is None:
            with self.meter.part(source.relation.name, MERGE):
                made.insert(0, Rows(source.relation, self._merge(source, replace(self.share, by=by))))
        groups = made[0].groups
        assert groups is not None
        return groups

    def rows(self, source: StoredSource, wanted: Relation) -> Rows:
        """The fewest rows that groups of `wanted` can be made of: of the source itself, or of what was made of it."""
        by = self.told_by(wanted)
        made = self._made.setdefault(self._key(source, by), [])
        if not made:
            if by is not None:
                self._made = {self._key(source, by): made}  # what was told otherwise nobody will ask for
            stored = None if self._stacked is None else self._stacked(source, replace(self.share, by=by))
            if stored is not None:
                made.append(Rows(source.relation, None, stored))
            else:
                self.merged(source, by)
        return made[0] if len(made) == 1 else min(_finer(made, wanted), key=len)

    def told_by(self, wanted: Relation) -> Relation | None:
        """A pass takes groups of what is wanted: those of what is stored stand in several passes. Of parts of groups
        any rows will do."""
        if self.share.passes == 1 or self.share.partial:
            return None
        if self._telling is None:
            return wanted
        if wanted.name not in self._told:
            self._told[wanted.name] = self._telling.by(wanted)
        return self._told[wanted.name]

    def note(self, source: StoredSource, wanted: Relation, rows: Rows, groups: Groups, at: Array | None) -> None:
        """Note that groups were rolled up from these rows, and which of them each row is in. Only those are kept that
        others are made of: the groups of dozens of queries would take a task's memory many times over."""
        by = self.told_by(wanted)
        if self._again is None or wanted.name in self._again:
            self._made[self._key(source, by)].append(Rows(wanted, groups))
        if rows.groups is not None and at is not None:
            self._rolled.append((rows.groups, groups, at))

    def place(self, rows: Groups, groups: Groups) -> Array | None:
        """Which of these groups each row is in, if they were rolled up from the rows."""
        return next((at for fine, coarse, at in self._rolled if fine is rows and coarse is groups), None)

    def _key(self, source: StoredSource, by: Relation | None) -> tuple[str, frozenset[int] | None, str | None]:
        return source.relation.name, source.storages, None if by is None else by.name


def _finer(made: list[Rows], wanted: Relation) -> list[Rows]:
    """Those that groups of a relation can be made of."""
    return [rows for rows in made if rolls_up_in_windows(rows.relation, wanted)]


def made_again(asked: Sequence[Relation]) -> frozenset[str]:
    """Of relations that are asked for, those whose groups are of use to another one, or again. A worker needs to know
    the same in every batch."""
    names = tuple(relation.name for relation in asked)
    known = _again.get(names)
    if known is None:
        if len(_again) >= REMEMBERED:
            _again.clear()
        useful = (one.name for one in asked if sum(rolls_up_in_windows(one, other) for other in asked) > 1)
        known = _again[names] = frozenset(useful)
    return known


_again: dict[tuple[str, ...], frozenset[str]] = {}
