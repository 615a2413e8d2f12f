"""The rows of each side at the instants of an item, and the keys that they are joined by.

stored relation ──► panes merged into windows ──► rows that can be joined ──► numbered by (instant, key)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from penstock.kernels.tables.joining import list_rows
from penstock.logical.expressions import Column, Prefix
from penstock.logical.query import Attribute
from penstock.logical.window import Window
from penstock.relations.component import null_component
from penstock.relations.joining import key_relation
from penstock.runtime.merge.closer import closed_groups
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.last import last_records
from penstock.runtime.merge.join.named import with_names
from penstock.runtime.merge.join.reading import JoinReading, SideReading
from penstock.runtime.merge.merge import Merge
from penstock.runtime.merge.once import MergedOnce
from penstock.runtime.merge.shares import Share
from penstock.runtime.merge.windows import TaskSegments, merge_windows
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray


@dataclass(frozen=True)
class SideRows:
    """The groups of a side, each in an instant; what cannot be joined is left out."""

    reading: SideReading
    groups: Groups

    @property
    def alias(self) -> str:
        return self.reading.side.alias


def read_sides(reading: JoinReading, cut: Cut, turn: int, segments: TaskSegments) -> list[SideRows]:
    """All sides of one pass, the largest in the slice of the cut."""
    found = _whole_sides(reading, cut, turn, segments)
    if cut.slices > 1:
        one = found[reading.largest]
        rows = np.arange(cut.slice, len(one.groups), cut.slices)
        found[reading.largest] = replace(one, groups=one.groups.take(rows))
    return found


def _whole_sides(reading: JoinReading, cut: Cut, turn: int, segments: TaskSegments) -> list[SideRows]:
    """Sides that read the same in the same windows are merged once."""
    merged: dict[tuple[Window, tuple[Attribute, ...]], MergedOnce] = {}
    found = []
    for one in reading.sides:
        window, shift = one.side.window, reading.shift(one.side.window)
        # What has no key is there whole in every pass.
        mine, at = (cut, turn) if one.placed else (replace(cut, passes=1), 0)
        if window.counted:
            found.append(SideRows(one, _joinable(last_records(one, mine, shift, at, segments), one)))
            continue
        # Passes of two sides must take the same keys, also where these are called differently.
        key = one.side.key if cut.passes > 1 else ()
        once = merged.get((window, key))
        if once is None:
            once = merged[window, key] = _merged_once(one, mine, shift, at, segments)
        groups = closed_groups(once, one.sources, one.wanted)
        found.append(SideRows(one, _joinable(replace(groups, panes=groups.panes - shift), one)))
    return found


def _merged_once(one: SideReading, cut: Cut, shift: int, turn: int, segments: TaskSegments) -> MergedOnce:
    moved = replace(cut, first=cut.first + shift, beyond=cut.beyond + shift)
    by = key_relation(one.wanted, one.placed) if one.placed else None
    window = one.side.window
    return MergedOnce(
        Share(turn, cut.passes),
        lambda source, share: merge_windows(window, source, moved, segments, replace(share, by=by)),
    )


def _joinable(groups: Groups, one: SideReading) -> Groups:
    """Without NULLs where they equal nothing."""
    nulls = np.zeros(len(groups), bool)
    for attribute in one.side.solid:
        column = attribute.column.name if isinstance(attribute, Prefix) else attribute.name
        nulls |= groups.components[null_component(column)] != 0
    return groups.take(np.flatnonzero(~nulls)) if nulls.any() else groups


def key_numbers(sides: Sequence[SideRows]) -> list[Array]:
    """For each side the number of every row's (instant, key), the same on all sides."""
    names = [key_name(number, attribute) for number, attribute in enumerate(sides[0].reading.side.key)]
    pieces = []
    for one in sides:
        keyed = with_names(one.groups, zip(one.reading.side.key, names, strict=True))
        pieces.append(Piece(GroupRows(keyed), keyed.panes))
    bare = key_relation(sides[0].reading.wanted, names)
    numbers = Merge(bare, pieces, Vocabulary()).numbers()
    edges = np.cumsum([0, *(len(one.groups) for one in sides)])
    return [numbers[a:b] for a, b in pairwise(edges)]


def key_name(number: int, attribute: Attribute) -> Attribute:
    """The name of a key on all sides."""
    if isinstance(attribute, Prefix):
        return Prefix(Column(f"#{number}", attribute.column.type), attribute.length)
    return Column(f"#{number}", attribute.type)


@dataclass(frozen=True)
class Lists:
    """Rows of all sides by key: those of key k of side s are rows[s, starts[s, k] : starts[s, k + 1]]."""

    starts: Array
    rows: Array


def lists_of(numbers: Sequence[Array]) -> Lists:
    """Lists of the rows that have these keys."""
    keys = max((int(of.max()) + 1 for of in numbers if len(of)), default=0)
    starts = np.zeros((len(numbers), keys + 2), np.int64)
    rows = np.zeros((len(numbers), max((len(of) for of in numbers), default=0)), np.int64)
    for side, of in enumerate(numbers):
        list_rows(of, starts[side], rows[side])
    return Lists(np.ascontiguousarray(starts[:, :-1]), rows)


def distinct_codes(groups: Groups, one: SideReading, attributes: Sequence[Attribute]) -> tuple[Array, int]:
    """The number of every row's values of these attributes of the stream's own, and how many there are."""
    if not attributes or not len(groups):
        return np.zeros(len(groups), np.int64), 1
    bare = key_relation(one.wanted, attributes)
    cut = with_names(groups, [(attribute, attribute) for attribute in attributes])
    codes = Merge(bare, [Piece(GroupRows(cut), np.zeros(len(groups), np.int64))], cut.dictionaries).numbers()
    return codes, int(codes.max()) + 1
