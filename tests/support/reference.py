"""A direct-mapped table that evicts on collision, one tuple at a time: the test of the compiled kernel.

As in the smap paper, Section 2: probe the one bucket of the key's hash; the same key folds into the entry, an
empty bucket takes the tuple, another key is evicted with its partial aggregates and replaced.  Bucket numbers
are given by the caller, so that the reference needs no hash function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from operator import add

Number = int | float
Partials = tuple[Number, ...]

FOLDS: Mapping[str, Callable[[Number, Number], Number]] = {"add": add, "min": min, "max": max}


@dataclass(frozen=True)
class Entry:
    """A group and its partial aggregates."""

    key: Hashable
    partials: Partials


@dataclass(frozen=True)
class Trace:
    """What a table did: evictions in order, residents by bucket at the end, and how many probes there were."""

    evictions: tuple[Entry, ...]
    residents: Mapping[int, Entry]
    probes: int

    @property
    def flushed(self) -> tuple[Entry, ...]:
        """Everything the table hands on: its evictions, then its residents by bucket number."""
        return self.evictions + tuple(self.residents[bucket] for bucket in sorted(self.residents))


def run_direct_table(entries: Iterable[Entry], buckets: Iterable[int], folds: tuple[str, ...]) -> Trace:
    """Send entries (a tuple is an entry with its own values as partials) through a table.

    `buckets` has the bucket number of each entry, `folds` how each partial aggregate is combined.

    >>> trace = run_direct_table([Entry("a", (1,)), Entry("a", (1,)), Entry("b", (1,))], [0, 0, 0], ("add",))
    >>> trace.evictions, trace.residents
    ((Entry(key='a', partials=(2,)),), {0: Entry(key='b', partials=(1,))})
    """
    table: dict[int, Entry] = {}
    evictions: list[Entry] = []
    probes = 0
    for entry, bucket in zip(entries, buckets, strict=True):
        probes += 1
        resident = table.get(bucket)
        if resident is not None and resident.key == entry.key:
            entry = Entry(entry.key, fold(resident.partials, entry.partials, folds))
        elif resident is not None:
            evictions.append(resident)
        table[bucket] = entry
    return Trace(tuple(evictions), table, probes)


def merge_entries(entries: Iterable[Entry], folds: tuple[str, ...]) -> dict[Hashable, Partials]:
    """The level above: one entry per key, whatever was evicted when.

    >>> merge_entries([Entry("a", (2, 7)), Entry("a", (1, 3))], ("add", "min"))
    {'a': (3, 3)}
    """
    merged: dict[Hashable, Partials] = {}
    for entry in entries:
        known = merged.get(entry.key)
        merged[entry.key] = entry.partials if known is None else fold(known, entry.partials, folds)
    return merged


def fold(left: Partials, right: Partials, folds: tuple[str, ...]) -> Partials:
    """Combine two partial aggregates of one group."""
    return tuple(FOLDS[name](a, b) for name, a, b in zip(folds, left, right, strict=True))
