"""Codes of many dictionaries in terms of one: joined once in a task, not once for every item that is merged.

Every run of a segment has dictionaries of its own, and dozens of queries meet the same strings in item after item. A
vocabulary remembers which code of a run is which of its own, and takes in only strings that some row uses. When it has
grown large, it is forgotten between two merges.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

import numpy as np

from penstock.kernels.dictionary import Dictionary, gather
from penstock.kernels.tables import merge as kernels
from penstock.relations.component import Component

Array = np.ndarray
MOST = 24 << 20  # bytes

Words = Callable[[], tuple[Array, Array]]  # offsets and bytes of a dictionary, read when they are needed


class Vocabulary:
    """A dictionary for each component, and by run and component the code there of every code met so far."""

    def __init__(self) -> None:
        self._dictionaries: dict[Component, Dictionary] = {}
        self._known: dict[tuple[Hashable, Component], Array] = {}

    def dictionary(self, component: Component) -> Dictionary:
        return self._dictionaries.setdefault(component, Dictionary())

    def recoded(self, run: Hashable, component: Component, size: int, words: Words, codes: Array, base: int) -> Array:
        """Codes (from `base` on; what is below stays) of a run's dictionary of `size` words as codes of ours."""
        place = run, component
        if place not in self._known:
            self._known[place] = np.full(size, -1, np.int64)
        known = self._known[place]
        new = np.empty(min(len(codes), size), np.int64)
        new = new[: kernels.unmet(codes, base, known, new)]
        if len(new):
            known[new] = self.dictionary(component).intern(*gather(*words(), new))
        recoded = np.empty(len(codes), np.int64)
        kernels.recode(codes, base, known, recoded)
        return recoded

    def forget(self, run: Hashable) -> None:
        """A run that is no more."""
        self._known = {place: known for place, known in self._known.items() if place[0] != run}

    def trim(self) -> None:
        """Forget everything if there is too much. Codes that were given out then mean nothing any more."""
        held = sum(known.nbytes for known in self._known.values())
        if held + sum(dictionary.nbytes for dictionary in self._dictionaries.values()) > MOST:
            self._dictionaries.clear()
            self._known.clear()


def compacted(dictionary: Dictionary, columns: Iterable[tuple[Array, int]]) -> tuple[Dictionary, list[Array]]:
    """A dictionary of only those words that these columns of codes (each with its base) use, and the columns in its
    codes."""
    given = list(columns)
    used = np.zeros(dictionary.count, np.uint8)
    for codes, base in given:
        kernels.mark(codes, base, used)
    chosen = np.flatnonzero(used)
    renamed = np.cumsum(used, dtype=np.int64) - 1
    recoded = []
    for codes, base in given:
        recoded.append(np.empty(len(codes), np.int64))
        kernels.recode(codes, base, renamed, recoded[-1])
    return dictionary.only(chosen), recoded
