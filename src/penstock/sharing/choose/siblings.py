"""Unions of siblings: the aggregates that a tree may be given next (seed aggregate-tree, Algorithm 1, lines 4 to 8).

For the children of one node, all unions of two of them and which children each would adopt, as a matrix of bits.  A
step of the search moves a few children, so the matrix is kept and changed: hundreds of queries have tens
of thousands of unions.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Masks = NDArray[np.uint64]  # a row each, as many words as the masks have


def packed(masks: Iterable[int], words: int) -> Masks:
    """Masks of any length as words of 64 bits."""
    low = (1 << 64) - 1
    rows = [[mask >> 64 * word & low for word in range(words)] for mask in masks]
    return np.array(rows, np.uint64).reshape(-1, words)


def unpacked(masks: Masks) -> NDArray[np.bool_]:
    """A column for each bit, the lowest first."""
    octets = np.ascontiguousarray(masks).astype("<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little").astype(bool)


class Siblings:
    """`children` are numbers of nodes; `unions[c]` (`bits[c]`) adopts those where `adopts[c]` is set, two at least."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.children: list[int] = []
        self.masks: Masks = np.empty((0, words), np.uint64)
        self.unions: Masks = np.empty((0, words), np.uint64)
        self.groups: NDArray[np.float64] = np.empty(0)  # of the unions, as far as they are known
        self.bits: NDArray[np.bool_] = np.empty((0, 64 * words), bool)
        self.adopts: NDArray[np.bool_] = np.empty((0, 0), bool)

    def change(self, children: Iterable[int], mask_of: dict[int, int]) -> None:
        """These are the children now."""
        wanted = list(children)
        here, known = set(wanted), set(self.children)
        stay = [place for place, child in enumerate(self.children) if child in here]
        if len(stay) < len(self.children):
            self.children = [self.children[place] for place in stay]
            self.masks, self.adopts = self.masks[stay], self.adopts[:, stay]
        new = [child for child in wanted if child not in known]
        if new:
            self._add(new, packed((mask_of[child] for child in new), self.words))
        kept = self.adopts.sum(axis=1) >= 2
        if not kept.all():
            self.keep(np.flatnonzero(kept))

    def keep(self, places: NDArray[np.intp]) -> None:
        """Only these unions."""
        self.unions, self.bits, self.adopts = self.unions[places], self.bits[places], self.adopts[places]
        self.groups = self.groups[places]

    def _add(self, children: list[int], masks: Masks) -> None:
        self.adopts = np.concatenate([self.adopts, _contains(self.unions, masks)], axis=1)
        self.children += children
        self.masks = np.concatenate([self.masks, masks])
        pairs = (masks[:, None, :] | self.masks[None, :, :]).reshape(-1, self.words)
        together = np.concatenate([self.unions, pairs])
        _, first = np.unique(together, axis=0 if self.words > 1 else None, return_index=True)
        fresh = together[np.sort(first[first >= len(self.unions)])]
        self.unions = np.concatenate([self.unions, fresh])
        self.bits = np.concatenate([self.bits, unpacked(fresh)])
        self.groups = np.append(self.groups, np.full(len(fresh), np.nan))
        self.adopts = np.concatenate([self.adopts, _contains(fresh, self.masks)])

    def mask(self, union: int) -> int:
        return sum(int(word) << 64 * place for place, word in enumerate(self.unions[union]))


def _contains(unions: Masks, masks: Masks) -> NDArray[np.bool_]:
    found = np.ones((len(unions), len(masks)), bool)
    for word in range(unions.shape[1]):
        found &= masks[None, :, word] & ~unions[:, None, word] == 0
    return found
