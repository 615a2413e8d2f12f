"""Streams that are joined by different keys: A with B by one, B with C by another.

    rows of A ──► each with its rows of B ──► each of these with its rows of C ──► combinations, in chunks

What some streams have equal is a *link*. Its values are numbered together with the instant, once for all of them. Then
one stream after the other is joined to those before it, by all links that it has with them, small ones first; so links
may also form a ring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.kernels.tables.joining import list_rows
from penstock.logical.query import Attribute, Join
from penstock.logical.resolve.joins.conditions import join_order
from penstock.logical.rewrite import inputs_read, own
from penstock.relations.joining import key_relation
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.join.named import with_names
from penstock.runtime.merge.join.pairs import ROOM, Pairs, expanded
from penstock.runtime.merge.join.sides import SideRows, key_name
from penstock.runtime.merge.merge import Merge
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray


@dataclass(frozen=True)
class Numbers:
    """A link: for each of its streams, the number of every row's (instant, value), of so `many`."""

    of: Mapping[str, Array]
    many: int


@dataclass(frozen=True)
class Step:
    """A stream that comes to those before it: what it is found by, (stream before, its numbers) and how many there are
    of each link; the words that its rows have, ascending, and lists of rows by these."""

    alias: str
    finders: tuple[tuple[str, Numbers], ...]
    words: tuple[Array, ...]
    starts: Array
    rows: Array

    def find(self, found: Mapping[str, Array]) -> Array:
        """For each combination the number of its list; the last one is empty."""
        numbers, nowhere = np.zeros(len(next(iter(found.values()))), np.int64), len(self.starts) - 2
        for (before, link), words in zip(self.finders, self.words, strict=True):
            wanted = numbers * link.many + link.of[before][found[before]]
            at = np.minimum(np.searchsorted(words, wanted), max(0, len(words) - 1))
            there = words[at] == wanted if len(words) else np.zeros(len(wanted), bool)
            numbers = np.where(there, at, len(words))
        return np.minimum(numbers, nowhere)


def linked_pairs(join: Join, sides: Sequence[SideRows]) -> Iterator[Pairs]:
    """Combinations of rows for which all links hold; in the order of the sides."""
    by_alias = {one.alias: one for one in sides}
    links = [_numbers(link, by_alias) for link in join.links]
    small = sorted(sides, key=lambda one: len(one.groups))
    first, *others = join_order([one.alias for one in small], [link.of for link in links])
    steps = [_step(alias, [first, *others[:number]], links) for number, alias in enumerate(others)]
    rows = len(by_alias[first].groups)
    for begin in range(0, rows, ROOM):
        start = {first: np.arange(begin, min(rows, begin + ROOM))}
        for found in _joined(start, steps):
            yield Pairs(tuple(found[one.alias] for one in sides), ())


def _joined(found: Mapping[str, Array], steps: Sequence[Step]) -> Iterator[Mapping[str, Array]]:
    if not steps:
        yield found
        return
    step, *rest = steps
    for index, rows in expanded(step.find(found), step.starts, step.rows):
        yield from _joined({**{alias: of[index] for alias, of in found.items()}, step.alias: rows}, rest)


def _numbers(link: Sequence[Attribute], sides: Mapping[str, SideRows]) -> Numbers:
    name = key_name(0, link[0])
    aliases, pieces = [], []
    for attribute in link:
        (alias,) = inputs_read(attribute)
        keyed = with_names(sides[alias].groups, [(own(attribute, alias), name)])
        aliases.append(alias)
        pieces.append(Piece(GroupRows(keyed), keyed.panes))
    numbers = Merge(key_relation(sides[aliases[0]].reading.wanted, [name]), pieces, Vocabulary()).numbers()
    edges = np.cumsum([len(sides[alias].groups) for alias in aliases])[:-1]
    return Numbers(dict(zip(aliases, np.split(numbers, edges), strict=True)), int(numbers.max(initial=-1)) + 1)


def _step(alias: str, before: Sequence[str], links: Sequence[Numbers]) -> Step:
    """Rows of a stream by what it has equal with those before it."""
    mine = [link for link in links if alias in link.of and any(one in link.of for one in before)]
    finders = tuple((next(one for one in before if one in link.of), link) for link in mine)
    numbers = np.zeros(len(mine[0].of[alias]), np.int64)
    words = []
    for link in mine:
        found, numbers = np.unique(numbers * link.many + link.of[alias], return_inverse=True)
        words.append(found)
    starts, rows = np.zeros(len(words[-1]) + 3, np.int64), np.zeros(len(numbers), np.int64)
    list_rows(numbers.astype(np.int64), starts, rows)
    return Step(alias, finders, tuple(words), starts[:-1], rows)
