"""What closes together, cut into merge items that fit a task's memory, and shared out to tasks.

Queries whose windows are the same and that read the same relations are one piece of work: what is stored is read and
merged once for all of them. Sizes come from the segments' indexes, so an item's rows are known, not guessed (slots are
taken as equal). A window too large for one item is cut by hash slots; a slot too large, into passes over finer hash
bits. Windows that overlap are merged several at a time, since they share most of their panes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from penstock.logical.query import Query
from penstock.logical.window import ROWS, Panes, Window
from penstock.relations.closing import RollUp, closing_of, slots_hold
from penstock.relations.relation import Relation, Wanted, bounds_relation
from penstock.relations.storage import StoredSource
from penstock.runtime.settings import TaskSettings
from penstock.sharing.model.closings import LEAST_ROWS, rolled_bytes
from penstock.state.segments.read import Block

FOREVER = 1 << 64
TOGETHER = 64  # overlapping windows in one item at most

Array = np.ndarray


@dataclass(frozen=True)
class Cut:
    """Windows [first, beyond) and slots [low, high); `passes` > 1: shares of them by finer hash bits, one after the
    other (`turn` None: all of them) or one alone; `partial`: each has parts of groups. `part` tells the cuts of one
    query apart. Of a join: one of `slices` of the rows of its largest side, with all rows of the others."""

    part: int
    first: int
    beyond: int
    low: int
    high: int
    turn: int | None = 0
    passes: int = 1
    rows: int = 0
    slice: int = 0
    slices: int = 1
    partial: bool = False


@dataclass(frozen=True)
class MergeItem:
    """A piece of work: some windows of the queries `names`, which are read together; of a compaction some panes of a
    relation. `of` tells what belongs together."""

    of: int
    names: tuple[str, ...]
    cut: Cut
    weight: float = 1.0  # of a query of it, beside others of what belongs together

    @property
    def work(self) -> float:
        """Rows that its queries go through."""
        return self.cut.rows * len(self.names) * self.weight


@dataclass(frozen=True)
class Part:
    """A relation that a query is made of, and what is read for it."""

    wanted: Relation
    sources: tuple[StoredSource, ...]


@dataclass(frozen=True)
class Wanting:
    """A query, the groups that its results are finished from, and the finer rows of its details."""

    query: Query
    groups: Part
    details: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.groups, *self.details)

    @property
    def charged(self) -> str:
        """The stored relation that counters of work name for it."""
        return self.groups.sources[0].relation.name if self.groups.sources else self.groups.wanted.name

    @property
    def sources(self) -> tuple[StoredSource, ...]:
        """All that is read, each once."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))

    @cached_property
    def scattered(self) -> bool:
        """Whether what makes up a group may stand in several slots."""
        return bool(self.sources) and not slots_hold(self.groups.wanted, (s.relation for s in self.sources))


def wanting_of(query: Query, wanted: Wanted, found: Sequence[tuple[StoredSource, ...]]) -> Wanting:
    """`found` has what is read for each part of a query."""
    parts = [Part(relation, read) for relation, read in zip(wanted.relations, found, strict=True)]
    return Wanting(query, parts[0], tuple(parts[1:]))


@dataclass(frozen=True)
class Reading:
    """What queries that are read together have in common: their windows, and what is stored of them.

    `time` is the stream's time column, `landmark` where landmark windows begin, `picks` has the records by weight where
    delays are promised.
    """

    window: Window
    sources: tuple[StoredSource, ...]
    stream: str
    time: str
    landmark: int | None = None
    picks: Relation | None = None

    @cached_property
    def bounds(self) -> Relation | None:
        """Where the first and last times of panes of rows are."""
        return bounds_relation(self.stream, self.window.panes, self.time) if self.window.axis == ROWS else None

    @cached_property
    def _panes(self) -> dict[str, Panes]:
        return {source.relation.name: source.relation.panes for source in self.sources}

    def over(self, relation: str) -> Window:
        """The windows, made of the panes that a relation has."""
        return self.window.over(self._panes[relation]) if relation in self._panes else self.window

    @property
    def relations(self) -> tuple[str, ...]:
        """All that is read."""
        names = tuple(source.relation.name for source in self.sources)
        return (*names, *(one.name for one in (self.bounds, self.picks) if one is not None))


@dataclass(frozen=True)
class Due:
    """The windows of some queries that a batch closes, ascending, with (about) the partial groups of each, and the
    blocks that these are in."""

    reading: Reading
    wanting: tuple[Wanting, ...]
    windows: Array
    rows: Array
    blocks: tuple[Block, ...] = ()


def due_items(number: int, one: Due, share: int, settings: TaskSettings) -> Iterator[MergeItem]:
    """Whole windows of all queries together, as long as they fit; of a larger window, each kind of query by itself."""
    kinds, everything = _kinds(one), tuple(wanting.query.name for wanting in one.wanting)
    memory = max(1, settings.task_memory // max((read_bytes(one, s.relation) for s in one.reading.sources), default=1))
    limit = min(share, memory)
    # A window that is read once for several kinds of query is cut for want of memory alone, not to be shared out.
    most = limit if len(kinds) == 1 and not kinds[0].scattered else memory
    together, part = 1 << 62 if one.reading.window.tumbling else TOGETHER, 0
    for first, beyond, size in whole_windows(one.windows, one.rows, limit, together):
        whole = Cut(part, first, beyond, 0, settings.slots, None if any(k.whole for k in kinds) else 0, 1, size)
        cuts = [(everything, whole)] if size <= most else list(_large(whole, -(-size // most), kinds))
        part += len(cuts)
        for queries, cut in cuts:
            yield MergeItem(number, queries, cut)


@dataclass(frozen=True)
class CutKind:
    """Queries whose large windows are cut alike. A LIMIT needs each window `whole`; what makes up a group may be
    `scattered` over slots; passes over a `detailed` query have parts of groups, and are one item."""

    whole: bool
    scattered: bool
    detailed: bool
    queries: tuple[str, ...]


def _kinds(one: Due) -> list[CutKind]:
    found: dict[tuple[bool, bool, bool], list[str]] = {}
    for wanting in one.wanting:
        kind = wanting.query.limit is not None, wanting.scattered, bool(wanting.details)
        found.setdefault(kind, []).append(wanting.query.name)
    return [CutKind(*kind, tuple(queries)) for kind, queries in found.items()]


def _large(large: Cut, shares: int, kinds: list[CutKind]) -> Iterator[tuple[tuple[str, ...], Cut]]:
    """Cuts of windows that do not fit: by slots, or by passes over all slots, each with some groups of a query."""
    part = itertools.count(large.part)
    for kind in kinds:
        if kind.detailed and (kind.scattered or kind.whole):
            for query in kind.queries:
                yield (query,), replace(large, part=next(part), turn=None, passes=shares)
        elif kind.detailed:
            for cut in of_whole_groups(large, shares):
                yield kind.queries, replace(cut, part=next(part))
        elif kind.scattered:  # passes by the query's own groups
            for query in kind.queries:
                for turn in [None] if kind.whole else range(shares):
                    yield (query,), replace(large, part=next(part), turn=turn, passes=shares)
        elif kind.whole:
            yield kind.queries, replace(large, part=next(part), passes=shares)
        else:
            for cut in by_slots(large, shares):
                yield kind.queries, replace(cut, part=next(part))


def by_slots(large: Cut, shares: int) -> Iterator[Cut]:
    """Cuts by slots; where there are more shares than slots, each slot in passes."""
    slots = large.high - large.low
    ranges, passes = min(max(1, shares), slots), max(1, -(-shares // slots))
    edges = [large.low + slots * i // ranges for i in range(ranges + 1)]
    for low, high in itertools.pairwise(edges):
        for turn in range(passes):
            yield replace(large, low=low, high=high, turn=turn, passes=passes, rows=large.rows // (ranges * passes))


def of_whole_groups(large: Cut, shares: int) -> Iterator[Cut]:
    """Cuts by slots, which have all that their groups are made of; where one has passes, they are all in it."""
    return (replace(cut, turn=None) for cut in by_slots(large, shares) if cut.turn == 0)


def read_bytes(one: Due, relation: Relation) -> int:
    """Memory that a row of a relation takes, roughly; fewer columns of it are read where it is only rolled up."""
    plain = one.reading.window.tumbling and not any(wanting.details for wanting in one.wanting)
    if plain and all(isinstance(closing_of(each.groups.wanted, relation), RollUp) for each in one.wanting):
        return max(rolled_bytes(each.groups.wanted) for each in one.wanting)
    return row_bytes(relation)


def row_bytes(bare: Relation) -> int:
    """Memory that one partial group takes while it is merged and finished, roughly."""
    words = sum(max(1, form.words) for form in bare.shape.forms(bare.states).values())
    return 48 * (len(bare.parts) + words + 2)


def cut_panes(panes: Array, rows: Array, limit: int, slots: int) -> Iterator[Cut]:
    """Cuts of about `limit` rows, for compaction: panes in place of windows."""
    part = itertools.count()
    for first, beyond, size in whole_windows(panes, rows, limit, 1 << 62):
        for cut in by_slots(Cut(0, first, beyond, 0, slots, rows=size), -(-size // limit)):
            yield replace(cut, part=next(part))


def whole_windows(windows: Array, rows: Array, limit: int, together: int) -> Iterator[tuple[int, int, int]]:
    """(first, beyond, rows): as many whole windows as fit, at least one."""
    start = 0
    while start < len(windows):
        stop = start + max(1, int(np.searchsorted(np.cumsum(rows[start:]), limit, "right")))
        stop = min(stop, start + together)
        yield int(windows[start]), int(windows[stop - 1]) + 1, int(rows[start:stop].sum())
        start = stop


def share_out(items: list[MergeItem], tasks: int) -> list[list[MergeItem]]:
    """Items to tasks, the largest first, each to the task with the least work."""
    bins: list[list[MergeItem]] = [[] for _ in range(min(tasks, len(items)))]
    load = [0.0] * len(bins)
    for item in sorted(items, key=lambda i: (-i.work, i.of, i.cut.part)):
        least = load.index(min(load))
        bins[least].append(item)
        load[least] += item.work + LEAST_ROWS // 10
    return bins
