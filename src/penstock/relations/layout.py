"""Where every component stands in the packed key words, and how a relation's key is cut from them.

A component (see `kernels.tables.pack`) with values in [base, base + 2^bits) takes a bit field of one 64-bit word.
A constant component takes no bits at all: its base says it all. Ranges are measured on the data that a
task has met so far, so thirteen attributes usually fit a few words and a pair of them one; when a value
falls outside its field, the task makes a new layout and rewrites its tables (`runtime.tables.leaf`).

Layouts are private to a task: segments hold canonical components, never packed words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from penstock.relations.component import Component

WORD = 64
LEAST = -(1 << 63)
# Widths offered to a field: wide enough apart that a growing range seldom asks for a new layout.
STEPS = (0, 1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 56, 64)

Range = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """A component's bit field: `bits` bits of word `word` from bit `shift`, holding value − base."""

    word: int
    shift: int
    bits: int
    base: int

    def holds(self, span: Range) -> bool:
        """Whether every value of this range has room; an empty range (low > high) always has."""
        return span[0] > span[1] or (self.base <= span[0] and span[1] - self.base < (1 << self.bits))

    @property
    def zero(self) -> bool:
        """Whether all values are zero."""
        return not self.bits and not self.base

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Layout:
    """Places of all components in `words` 64-bit words."""

    places: Mapping[Component, Place]
    words: int

    def holds(self, ranges: Mapping[Component, Range]) -> bool:
        """Whether every value of these ranges has room."""
        return all(self.places[name].holds(span) for name, span in ranges.items())


@dataclass(frozen=True)
class Part:
    """A component in a relation's key; `drop` low bits are masked off (an IPv4 prefix)."""

    component: Component
    drop: int = 0


@dataclass(frozen=True)
class Term:
    """target |= rotate_left(source & mask, turn)."""

    source: int
    mask: int
    turn: int
    target: int


@dataclass(frozen=True)
class Projection:
    """How to cut a relation's key out of the stream's (or a parent's) words; `places` are those in the key."""

    terms: tuple[Term, ...]
    words: int
    places: Mapping[Component, Place]


def width(span: Range) -> tuple[int, int]:
    """(base, bits) of a field for values of this range, with room to grow.

    >>> width((6, 17)), width((0, 65535)), width((5, 5)), width((-3, 4))
    ((0, 6), (0, 16), (5, 0), (-11, 6))
    """
    low, high = span
    if low >= high:
        return (low if low == high else 0), 0
    snug = (high - low).bit_length()
    if low >= 0 and high.bit_length() <= snug + 2:
        return 0, _step(high.bit_length())
    bits = min(WORD, snug + 2)
    return max(LEAST, low - (1 << (bits - 2))), _step(bits)


def _field(span: Range, before: Place | None) -> tuple[int, int]:
    return (before.base, before.bits) if before is not None and before.holds(span) else width(span)


def _step(bits: int) -> int:
    return next(step for step in STEPS if step >= bits)


def union(one: Mapping[Component, Range], other: Mapping[Component, Range]) -> dict[Component, Range]:
    """The ranges that cover both."""
    joined = dict(one)
    for name, (low, high) in other.items():
        before = joined.get(name, (low, high))
        joined[name] = min(before[0], low), max(before[1], high)
    return joined


def lay_out(
    ranges: Mapping[Component, Range],
    together: Collection[Component] = (),
    before: Mapping[Component, Place] | None = None,
) -> Layout:
    """Give every component a field; the widest first, each into the first word with room.

    Those of `together` come before all others: a key that is made of them, a phantom's mostly, stands in few words.
    A field of `before` that still holds its component stays as wide: keys of such fields may stay as they are.
    """
    fields = {name: _field(span, (before or {}).get(name)) for name, span in ranges.items()}
    places, words = _first_fit(((name, bits, base) for name, (base, bits) in fields.items()), together)
    return Layout(places, words)


def snug(ranges: Mapping[Component, Range]) -> Layout:
    """Fields as wide as the ranges and no wider, for keys that meet no other values."""
    return Layout(*_first_fit((name, (high - low).bit_length(), low) for name, (low, high) in ranges.items()))


def _first_fit(
    fields: Iterable[tuple[Component, int, int]], together: Collection[Component] = ()
) -> tuple[dict[Component, Place], int]:
    used: list[int] = [0]
    places = {}
    for name, bits, base in sorted(fields, key=lambda field: (field[0] not in together, -field[1], field[0])):
        word = next((w for w, taken in enumerate(used) if taken + bits <= WORD), len(used))
        if word == len(used):
            used.append(0)
        places[name] = Place(word, used[word], bits, base)
        used[word] += bits
    return places, len(used)


def project(layout: Layout, parts: Iterable[Part], target: Layout | None = None) -> Projection:
    """The terms that build the key of a relation with these parts, in as few words as first fit finds.

    Terms between the same two words that turn by the same amount become one. A key that would take as many words as its
    parts stand in is left where it stands: one term for each word, which is what a phantom of many attributes gets.
    With a `target` the key goes to its places.
    """
    parts = list(parts)
    sources = {part.component: layout.places[part.component] for part in parts}
    places, words = _key_places(sources) if target is None else (target.places, target.words)
    merged: dict[tuple[int, int, int], int] = {}
    for part in parts:
        source, place = sources[part.component], places[part.component]
        if source.bits == 0:
            continue
        mask = (source.mask >> part.drop << part.drop) << source.shift
        key = source.word, (place.shift - source.shift) % WORD, place.word
        merged[key] = merged.get(key, 0) | mask
    terms = tuple(Term(source, mask, turn, word) for (source, turn, word), mask in sorted(merged.items()))
    return Projection(terms, words, places)


def _key_places(sources: Mapping[Component, Place]) -> tuple[Mapping[Component, Place], int]:
    places, words = _first_fit((name, place.bits, place.base) for name, place in sources.items())
    standing = sorted({place.word for place in sources.values() if place.bits})
    if len(standing) == words:
        places = {
            name: Place(standing.index(place.word) if place.bits else 0, place.shift, place.bits, place.base)
            for name, place in sources.items()
        }
    return places, words
