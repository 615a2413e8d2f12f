"""Functions that must know the values of a group, not only what they add up to: distinct counts, percentiles, entropy.

Such a function is computed of a *finer relation*, whose key has the value besides the keys of the query. That is stored
and merged as any relation; when a window closes, its rows are rolled up to the groups of the query.

    records ──► rows of (keys, value), counted ──► DetailRows ──► squeezed, pass by pass ──► reduced to results

The rows of a group are the same however records were cut into tasks, so the answers are as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.aggregates.base import AggregateFunction, FinishedValues, Kept, State
from penstock.logical.expressions import Column, Computed, Prefix
from penstock.logical.types import Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array, Words

Parameter = bool | int | float | str | None


@dataclass(frozen=True)
class Loss:
    """Rare values that may be forgotten: at most this `share` of a group's records, in decimal; and how many values a
    task keeps at a time at most (0: as many as fit)."""

    share: str
    cap: int = 0


@dataclass(frozen=True)
class Detail:
    """What a function needs besides the groups of its query: the attribute of the finer key, what its rows keep of
    which columns, and what may be lost of them."""

    attribute: Column | Prefix | Computed
    arguments: tuple[Computed, ...] = ()
    states: tuple[State, ...] = ()
    loss: Loss | None = None


@dataclass(frozen=True)
class DetailRows:
    """Rows of values that are not NULL. `at`: the group of each row; `numbers`: its value as a canonical number (of
    strings and IPv6 addresses any number that tells them apart); `counts`: its records; `weights`: for how many values
    it stands."""

    at: Array
    numbers: Array
    counts: Array
    weights: Array
    states: Mapping[State, Words]

    def __len__(self) -> int:
        return len(self.at)


class DetailFunction(AggregateFunction):
    """An aggregate function of details. `parameters` are those of the call, with defaults filled in."""

    def detail(self, argument: Column | Prefix | Computed, parameters: Sequence[Parameter]) -> Detail:
        """The finer key."""
        return Detail(argument)

    def squeeze(self, rows: DetailRows) -> DetailRows:
        """The same in fewer rows, where a large window is taken in passes; each value is in one of them."""
        return rows

    @abstractmethod
    def reduce(self, rows: DetailRows, groups: int, argument: Type, parameters: Sequence[Parameter]) -> FinishedValues:
        """The results of these many groups. Raises `OutOfRange` where one does not fit."""

    def finish(self, kept: Kept) -> FinishedValues:
        raise AssertionError(f"{self.name} is made of details")
