"""percentile and median: the value of a rank, which some record has. Nothing is interpolated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from penstock.aggregates.base import FinishedValues, ParameterRule
from penstock.aggregates.details.function import DetailFunction, DetailRows, Parameter
from penstock.logical.types import Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Array

DIGITS = 9  # of a share, after the point: ranks are computed with whole numbers of 64 bits


def is_share(value: Any) -> bool:
    """Whether it is a number from 0 to 1 of few digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return 0 <= value <= 1 and isinstance(exponent, int) and -exponent <= DIGITS


SHARE = ParameterRule("share", f"a number from 0 to 1, with at most {DIGITS} digits after the point", is_share)


@dataclass(frozen=True)
class Percentile(DetailFunction):
    """`share` None: it is a parameter of the call."""

    name: str
    share: float | None = None
    aliases: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[ParameterRule, ...]:  # type: ignore[override]
        return (SHARE,) if self.share is None else ()

    def result(self, argument: Type) -> Type | None:
        return argument if argument.numeric else None

    def reduce(self, rows: DetailRows, groups: int, argument: Type, parameters: Sequence[Parameter]) -> FinishedValues:
        share = parameters[0] if self.share is None else self.share
        assert isinstance(share, int | float)
        numbers, valid = of_share(rows, groups, share)
        return FinishedValues(numbers, valid, canonical=True)


def of_share(rows: DetailRows, groups: int, share: float) -> tuple[Array, Array | None]:
    """The number of the record at this share of each group, and which groups have one."""
    import numpy as np

    from penstock.kernels.tables.details import by_group, of_rank

    counts = np.bincount(rows.at, rows.counts, groups).astype(np.int64)
    found = np.zeros(groups, np.int64)
    of_rank(by_group(rows.at, rows.numbers), rows.at, rows.numbers, rows.counts, ranks(counts, share), found)
    valid = counts > 0
    return found, None if valid.all() else valid


def ranks(counts: Array, share: float) -> Array:
    """⌈share · count⌉ in decimal, at least 1: 0.07 of 100 is 7, though the double is above it.

    >>> import numpy as np
    >>> ranks(np.array([100, 3, 10**12 + 1]), 0.07).tolist(), ranks(np.array([5]), 0.0).tolist()
    ([7, 1, 70000000001], [1])
    """
    import numpy as np

    found: Array = np.maximum(1, -share_of(-counts, repr(share)))
    return found


def share_of(counts: Array, share: str) -> Array:
    """⌊share · count⌋ in decimal."""
    scale = 10**DIGITS
    part = int(Decimal(share) * scale)
    whole, rest = counts // scale, counts % scale
    found: Array = whole * part + rest * part // scale
    return found


PERCENTILE, MEDIAN = Percentile("percentile"), Percentile("median", 0.5)
