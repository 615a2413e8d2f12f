"""The LFTA of the papers, one tuple at a time: a tree of tables, phantoms above queries.

It checks the engine's chunked execution (and the lab's compiled one), so it is written apart from both and for
reading, not for speed. Section 2.5: a tuple probes the tables the stream feeds; an entry that a table passes on is
like a new tuple to each table it feeds. Section 3.2.2: at the end of an epoch tables are emptied from the top down,
each into its children; a query's entries leave for the HFTA. Section 7: with epochs of several lengths a table is
emptied whenever a query at or below it is due.

The caller gives keys and buckets as functions, so there is no hash function here: the same functions must give the
same entries, table by table, in the same order.

Two policies on a collision. `NEWEST`: the resident is passed on and replaced, as the paper has it. `FREQUENT`: the
resident loses one credit (a newcomer starts with one, a hit gains one); without credit it is passed on and replaced,
else the newcomer itself is passed on. With `RECENT` (seed aggregate-tree) any entry may stand anywhere: a newcomer
takes the next free bucket, or that of the entry which was met longest ago.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from support.reference import Entry, Partials, fold

STREAM = -1
NEWEST, FREQUENT, RECENT = "newest", "frequent", "recent"

Key = Hashable


@dataclass(frozen=True)
class Relation:
    """One table of a configuration; relations are numbered in their order, parents before children.

    `key` takes what feeds the relation (a tuple of the stream, or a key of the parent) to its own key. Without
    buckets there is no table: all is passed straight on, unprobed.
    """

    name: str
    parent: int
    key: Callable[[Key], Key]
    buckets: int
    query: bool
    policy: str = NEWEST


@dataclass
class Counts:
    """What happened at one relation. Evictions are entries passed on by a collision, flushed ones by an epoch's end."""

    probes: int = 0
    evictions: int = 0
    flush_probes: int = 0
    flush_evictions: int = 0
    flushed: int = 0

    def passed(self) -> int:
        return self.evictions + self.flush_evictions + self.flushed


@dataclass
class Bucket:
    entry: Entry
    credit: int = 1


@dataclass
class Table:
    """A relation at work: its residents, all it has passed on in order, and counts."""

    relation: Relation
    residents: dict[int, Bucket] = field(default_factory=dict)
    recency: dict[Key, int] = field(default_factory=dict)  # with RECENT: buckets by key, the one met longest ago first
    passed: list[Entry] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


class Phantoms:
    """A configuration at work.

    `bucket(number, key)` is the bucket of a key in the relation of that number, `folds` how the partial aggregates
    of a group are combined (see `reference.FOLDS`).

    >>> ab = Relation("AB", STREAM, lambda row: row, 1, query=False)
    >>> a = Relation("A", 0, lambda key: key[0], 1, query=True)
    >>> lfta = Phantoms([ab, a], lambda number, key: 0, ("add",))
    >>> lfta.run([((1, 1), (1,)), ((1, 1), (1,)), ((1, 2), (1,)), ((2, 2), (1,))])
    >>> lfta.tables[0].passed
    [Entry(key=(1, 1), partials=(2,)), Entry(key=(1, 2), partials=(1,))]
    >>> lfta.tables[1].residents[0].entry
    Entry(key=1, partials=(3,))
    >>> lfta.flush()
    >>> lfta.output("A")
    [Entry(key=1, partials=(3,)), Entry(key=2, partials=(1,))]
    """

    def __init__(
        self, relations: Sequence[Relation], bucket: Callable[[int, Key], int], folds: tuple[str, ...]
    ) -> None:
        for number, relation in enumerate(relations):
            if not STREAM <= relation.parent < number:
                raise ValueError(f"{relation.name} stands before what feeds it")
        self.tables = [Table(relation) for relation in relations]
        self.bucket = bucket
        self.folds = folds
        self._flushing = False

    def run(self, tuples: Iterable[tuple[Key, Partials]]) -> None:
        """Tuples of the stream, in order; a tuple brings the partial aggregates of itself alone."""
        for row, partials in tuples:
            self._feed(STREAM, Entry(row, partials))

    def flush(self, due: Iterable[str] | None = None) -> None:
        """The end of an epoch of these queries (all if none are named): they and all above are emptied, top-down."""
        names = {table.relation.name for table in self.tables} if due is None else set(due)
        emptied = [i for i in range(len(self.tables)) if names & self._at_or_below(i)]
        self._flushing = True
        for number in emptied:
            table = self.tables[number]
            for bucket in sorted(table.residents):
                table.counts.flushed += 1
                self._pass_on(number, table.residents[bucket].entry)
            table.residents.clear()
            table.recency.clear()
        self._flushing = False

    def output(self, name: str) -> list[Entry]:
        """What a query has sent to the HFTA, in order."""
        (table,) = (table for table in self.tables if table.relation.name == name and table.relation.query)
        return table.passed

    def _at_or_below(self, number: int) -> set[str]:
        below = [i for i, table in enumerate(self.tables) if table.relation.parent == number]
        return {self.tables[number].relation.name}.union(*(self._at_or_below(i) for i in below))

    def _feed(self, parent: int, entry: Entry) -> None:
        for number, table in enumerate(self.tables):
            if table.relation.parent == parent:
                self._probe(number, Entry(table.relation.key(entry.key), entry.partials))

    def _pass_on(self, number: int, entry: Entry) -> None:
        self.tables[number].passed.append(entry)
        self._feed(number, entry)

    def _probe(self, number: int, entry: Entry) -> None:
        table = self.tables[number]
        if table.relation.buckets == 0:
            self._evict(number, entry)
            return
        if self._flushing:
            table.counts.flush_probes += 1
        else:
            table.counts.probes += 1
        place = self._recent(table, entry.key) if table.relation.policy == RECENT else self.bucket(number, entry.key)
        if not 0 <= place < table.relation.buckets:
            raise ValueError(f"{table.relation.name} has no bucket {place}")
        resident = table.residents.get(place)
        if resident is None:
            table.residents[place] = Bucket(entry)
        elif resident.entry.key == entry.key:
            resident.entry = Entry(entry.key, fold(resident.entry.partials, entry.partials, self.folds))
            resident.credit += 1
        else:
            resident.credit -= 1
            if table.relation.policy != FREQUENT or resident.credit == 0:
                table.residents[place] = Bucket(entry)
                self._evict(number, resident.entry)
            else:
                self._evict(number, entry)

    def _recent(self, table: Table, key: Key) -> int:
        """The bucket of a key in a table that evicts what was met longest ago; the key is met now."""
        if key in table.recency:
            place = table.recency.pop(key)
        elif len(table.recency) < table.relation.buckets:
            place = len(table.recency)
        else:
            place = table.recency.pop(next(iter(table.recency)))
        table.recency[key] = place
        return place

    def _evict(self, number: int, entry: Entry) -> None:
        if self._flushing:
            self.tables[number].counts.flush_evictions += 1
        else:
            self.tables[number].counts.evictions += 1
        self._pass_on(number, entry)
