"""Passes over the rows of windows that are too large for a task's memory.

    few groups, whatever comes ──► any rows in a pass; the groups of all passes are merged
    other queries              ──► in a pass all rows of some values of one attribute, so its groups are whole

Queries that have such an attribute in common take the same rows. It must have many values, none of which most rows
have: else a pass is told by the whole key of its query, and reads for that query alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from penstock.logical.query import Attribute
from penstock.relations.component import Component, Tag
from penstock.relations.layout import Part
from penstock.relations.relation import Relation, attribute_parts, attribute_text, named
from penstock.runtime.merge.inputs import BlockRows, Piece
from penstock.runtime.merge.prefixes import finer_component
from penstock.runtime.merge.shares import Share, turns_of
from penstock.state.segments.read import Block

FEW_GROUPS = 1 << 16  # of a query in a window: as many may be there of each pass
SPREAD = 64  # values to each pass, at least
SKEW = 1.5  # times as many rows as a pass should have
LOOKED_AT = 1 << 14  # rows of a block that tell whether some values have most rows


def spread(attribute: Attribute, relation: Relation, blocks: Sequence[Block]) -> int:
    """How many values an attribute may have in these blocks of a relation, at most."""
    known = [part.component for part in relation.parts]
    parts = ((part, finer_component(part.component, known)) for part in attribute_parts(attribute))
    return prod(_spread(part, stored, stored in relation.coded_parts, blocks) for part, stored in parts)


def _spread(part: Part, stored: Component, coded: bool, blocks: Sequence[Block]) -> int:
    """Values of a component, which is cut from what is stored."""
    if coded:
        words = {(id(block.segment), block.run): block.words(stored) for block in blocks}
        return 1 + sum(words.values())
    spans = [block.spans([stored.text])[0] for block in blocks]
    if not spans:
        return 1
    low, high = min(low for low, _ in spans), max(high for _, high in spans)
    return min((high >> part.drop) - (low >> part.drop) + 1, 2 if stored.tag is Tag.NULL else 1 << 62)


def has_few_groups(wanted: Relation, relation: Relation, blocks: Sequence[Block]) -> bool:
    """Whether there are few groups in a window, however many rows it has."""
    return prod(spread(attribute, relation, blocks) for attribute in wanted.attributes) <= FEW_GROUPS


class Telling:
    """What tells which rows a pass takes for a query; the same in all passes of a window. `asked` are all queries that
    take part, by what they are rolled up to."""

    def __init__(self, relation: Relation, blocks: Sequence[Block], passes: int, asked: Iterable[Relation]) -> None:
        self._relation, self._blocks, self._passes = relation, blocks, passes
        self._used = Counter(attribute for one in asked for attribute in one.attributes)
        self._even: dict[Attribute, bool] = {}

    def by(self, wanted: Relation) -> Relation:
        """Its groups are made of whole groups of this one."""
        ordered = sorted(wanted.attributes, key=lambda one: (-self._used[one], attribute_text(one)))
        return next((self._alone(one) for one in ordered if self._is_even(one)), wanted)

    def _is_even(self, attribute: Attribute) -> bool:
        if attribute not in self._even:
            many = spread(attribute, self._relation, self._blocks) >= SPREAD * self._passes
            self._even[attribute] = many and self._evenly(attribute)
        return self._even[attribute]

    def _evenly(self, attribute: Attribute) -> bool:
        """By some rows of each block."""
        share, counts = Share(0, self._passes, self._alone(attribute)), np.zeros(self._passes, np.int64)
        for block in self._blocks:
            rows = min(block.rows, LOOKED_AT)
            if rows:
                piece = Piece(BlockRows(block, 0, rows), np.zeros(rows, np.int64))
                counts += np.bincount(turns_of(self._relation, piece, share), minlength=self._passes)
        return int(counts.max()) * self._passes <= SKEW * int(counts.sum())

    def _alone(self, attribute: Attribute) -> Relation:
        """The same for all queries, whatever columns they read: its name says which rows a pass has."""
        return named(replace(self._relation, attributes=(attribute,), arguments=(), states=(), slots=None, sieved=()))
