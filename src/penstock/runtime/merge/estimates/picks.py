"""How many records of each weight the windows of an item hold, whatever queries say of them.

A record that was picked stands for 2^k; what nobody will ever look at is written down by its number, as one record of a
negative weight (`runtime.batch.live.unread`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.logical.query import WEIGHT
from penstock.relations.component import value_component
from penstock.state.segments.groups import Groups

Array = np.ndarray
STEPS = 64  # more than there are


@dataclass(frozen=True)
class WindowPicks:
    """`counts` records of these `weights` in these `windows`, ascending by window and weight."""

    windows: Array
    weights: Array
    counts: Array

    def number(self, windows: Array, weights: Array) -> Array:
        """The picks of each weight in each window; zero where there are none."""
        known, asked = _keys(self.windows[self._picked], self.weights[self._picked]), _keys(windows, weights)
        counts: Array = np.append(self.counts[self._picked], 0)
        at = np.searchsorted(known, asked)
        there = np.append(known, np.iinfo(np.int64).max)[at] == asked
        return np.where(there, counts[at], 0)

    def triaged(self, windows: Array) -> Array:
        """How many records of each of these windows (ascending) were left unread, about: a pick lies in one window, and
        so do the records that it stands for."""
        unread = np.where(self.weights > 0, self.weights - 1, -self.weights) * self.counts
        return self._sums(windows, unread)

    def lost(self, windows: Array) -> Array:
        """Whether records of these windows were dropped."""
        found = self.windows[self.weights < 0]
        return np.isin(windows, found)

    def _sums(self, windows: Array, amounts: Array) -> Array:
        sums = np.zeros(len(windows), np.int64)
        at = np.searchsorted(windows, self.windows)
        known = np.flatnonzero(at < len(windows))
        known = known[windows[at[known]] == self.windows[known]]
        np.add.at(sums, at[known], amounts[known])
        return sums

    @property
    def listed(self) -> tuple[tuple[int, int, int], ...]:
        """As the driver hears of them."""
        columns = (self.windows.tolist(), self.weights.tolist(), self.counts.tolist())
        return tuple(zip(*columns, strict=True))

    @cached_property
    def _picked(self) -> Array:
        return np.flatnonzero(self.weights > 0)


NO_PICKS = WindowPicks(*(np.empty(0, np.int64) for _ in range(3)))


def listed_picks(listed: Sequence[tuple[int, int, int]]) -> WindowPicks:
    """The same again; they are in order."""
    columns = np.array(listed, np.int64).reshape(-1, 3).T
    return WindowPicks(*columns)


def picks_of(groups: Groups, shift: int = 0) -> WindowPicks:
    """From the groups of `relations.relation.picks_relations`; `shift` is what their windows' numbers are too high."""
    windows, weights = groups.panes - shift, groups.components[value_component(WEIGHT.name)]
    order = np.lexsort((weights, windows))
    return WindowPicks(windows[order], weights[order], groups.count[order])


def _keys(windows: Array, weights: Array) -> Array:
    """One number for both, ascending by window and weight; weights are powers of two."""
    found: Array = windows * STEPS + np.log2(weights).astype(np.int64)
    return found
