"""What a query groups by: a column, or the first bits of one with addresses as numbers (`src/8`).

penstock reads such columns as addresses and prints `10.0.0.0/8`; its peers group by the number that the first bits are,
as their users would. `benchmarks.measure.digest` takes both for the same.

    finer keys ──► coarser keys: what peers that roll up by hand make of what (`ladder`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BITS = 32  # of an address


@dataclass(frozen=True, order=True)
class Key:
    """A column, or its first `length` bits; 0: all of it, whatever it is."""

    column: str
    length: int = 0

    @property
    def name(self) -> str:
        """Of the column in results, and in tables of peers."""
        return f"{self.column}_{self.length}" if self.length else self.column

    @property
    def text(self) -> str:
        """As penstock's language has it."""
        return f"{self.column}/{self.length}" if self.length else self.column

    @property
    def below(self) -> int:
        """Bits that are left away."""
        return BITS - self.length if self.length else 0

    @property
    def size(self) -> int:
        """Bits of the least unsigned integer that holds a prefix."""
        return next(size for size in (8, 16, 32) if size >= self.length)

    def feeds(self, other: Key) -> bool:
        """Whether the other one can be told from it."""
        return self == other or (self.column == other.column and 0 < other.length < self.length)

    def cut(self, other: Key) -> int:
        """Bits to leave away from this one to have the other one, which it feeds."""
        return other.below - self.below


def key(text: str) -> Key:
    column, _, length = text.partition("/")
    return Key(column, int(length or 0))


def keys_of(texts: Sequence[str]) -> tuple[Key, ...]:
    return tuple(map(key, texts))


def distinct(queries: Sequence[Sequence[str]]) -> tuple[Key, ...]:
    """The keys of all queries, each once."""
    return tuple(dict.fromkeys(key(text) for texts in queries for text in texts))


def finest(queries: Sequence[Sequence[str]]) -> tuple[Key, ...]:
    """Keys that feed those of all queries, as few as can be."""
    every = distinct(queries)
    return tuple(one for one in every if not any(other != one and other.feeds(one) for other in every))


def feeds(finer: Sequence[Key], coarser: Sequence[Key]) -> bool:
    """Whether groups by some keys can be made of groups by others."""
    return all(any(one.feeds(other) for one in finer) for other in coarser)


@dataclass(frozen=True)
class Rung:
    """A relation that is rolled up by hand: its keys and the number of the rung it is made of (None: of the records),
    and the query that it answers (None: of none, it is but there to feed others)."""

    keys: tuple[Key, ...]
    parent: int | None = None
    query: int | None = None

    def answering(self, query: int) -> Rung:
        return Rung(self.keys, self.parent, query)


def ladder(queries: Sequence[Sequence[str]]) -> list[Rung]:
    """How to answer all queries from one aggregate by the finest keys: each from the coarsest that can feed it.

    Of two that are as coarse the one with fewer keys.
    """
    rungs = [Rung(finest(queries))]
    for number in sorted(range(len(queries)), key=lambda n: _weight(keys_of(queries[n])), reverse=True):
        wanted = keys_of(queries[number])
        if set(wanted) == set(rungs[0].keys) and rungs[0].query is None:
            rungs[0] = rungs[0].answering(number)
            continue
        known = [place for place, rung in enumerate(rungs) if feeds(rung.keys, wanted)]
        rungs.append(Rung(wanted, min(known, key=lambda place: _weight(rungs[place].keys)), number))
    return rungs


def _weight(keys: Sequence[Key]) -> tuple[int, int]:
    """How fine: bits that may differ (a whole column as many as an address), then keys."""
    return sum(one.length or BITS for one in keys), len(keys)
