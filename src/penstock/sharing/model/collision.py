"""Collision rates of direct-mapped tables, and how full they are (seed smap, Sec. 5).

g groups hash at random into b buckets; a record collides when its bucket holds another group.  The functions take
floats, `rates` takes numpy arrays.  `figures` and `flow` plan with `rate`; `allocate.registry` derives its closed form
from `MU`.
"""

from __future__ import annotations

from math import expm1, log1p

import numpy as np
from numpy.typing import ArrayLike, NDArray

MANY = 30.0  # groups of a bucket, from which on a sum over their number is not needed
_COUNTS = np.arange(1.0, 4 * MANY)
_LOGS = np.cumsum(np.log(_COUNTS))  # of factorials
MU = 0.354  # slope of the line x = α + μ g/b through the low part of the curve (seed smap, Eq. 16)


def rate(groups: float, buckets: float, length: float = 1.0) -> float:
    """x = (1 − b/g + (b/g)(1 − 1/b)^g)/l_a: Eq. 13 and, for flows of l_a records, Eq. 15 (seed smap).

    A part of a bucket (b < 1) goes on as 1 − b/g, so that the rate falls steadily from 1 at no table.
    """
    if buckets <= 0.0:
        return 1.0
    if groups <= 1.0:
        return 0.0
    if buckets <= 1.0:
        return (1.0 - buckets / groups) / length
    return (1.0 + buckets / groups * expm1(groups * log1p(-1.0 / buckets))) / length


def rates(groups: ArrayLike, buckets: ArrayLike, length: ArrayLike = 1.0) -> NDArray[np.float64]:
    """`rate` of arrays."""
    g, b, l = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in (groups, buckets, length)))  # noqa: E741
    whole = np.maximum(b, 1.0)
    with np.errstate(divide="ignore"):  # one bucket: log1p(−1) = −∞, and expm1 of it is −1
        rest = -whole / np.maximum(g, 1.0) * np.expm1(g * np.log1p(-1.0 / whole))
    rest = np.where(b <= 1.0, b / np.maximum(g, 1.0), rest)
    found = np.where(g <= 1.0, 0.0, (1.0 - rest) / l)
    return np.where(b > 0.0, found, 1.0)


def occupied(groups: float, buckets: float) -> float:
    """Entries in a table that has seen g groups: b(1 − (1 − 1/b)^g); the paper flushes b of them (Eq. 8).

    >>> round(occupied(1000, 1000)), round(occupied(10, 1e6)), occupied(5, 1)
    (632, 10, 1)
    """
    if buckets <= 0.0 or groups <= 0.0:
        return 0.0
    if buckets <= 1.0 or groups <= 1.0:
        return min(buckets, groups)
    return -buckets * expm1(groups * log1p(-1.0 / buckets))


def first_met(groups: ArrayLike, buckets: ArrayLike) -> NDArray[np.float64]:
    """Records that find something of before in their bucket, where `rate` thinks that they find their own group, when
    g groups come after as many others: the first one of each bucket, which the k groups of a bucket share.

    b Σ_{k≥1} e^{−λ} λ^k/k! · 1/k with λ = g/b: with few groups all of them, with many b/λ.

    >>> round(float(first_met(10, 1e6))), round(float(first_met(1000, 1000))), round(float(first_met(100_000, 1000)))
    (10, 485, 10)
    """
    g, b = np.broadcast_arrays(np.asarray(groups, np.float64), np.asarray(buckets, np.float64))
    per = np.divide(g, b, out=np.full(b.shape, np.inf), where=b > 0.0)
    some = np.minimum(per, MANY)
    terms = np.exp(-some[..., None] + _COUNTS * np.log(np.maximum(some, 1e-300))[..., None] - _LOGS)
    few = (terms / _COUNTS).sum(-1)
    many = 1.0 / np.maximum(per, MANY)
    return np.asarray(b * np.where(per < MANY, few, many * (1.0 + many * (1.0 + 2.0 * many))))


def distinct(groups: float, tuples: float) -> float:
    """Of g equally frequent groups, those that come among n records: the same urn as `occupied`.

    >>> round(distinct(1000, 500)), round(distinct(1000, 1e6))
    (394, 1000)
    """
    return occupied(tuples, groups)


def flow_length(groups: float, buckets: float, measured: float) -> float:
    """l_m: the rate of the model over the one measured (seed smap, Sec. 5.3), the next epoch's l_a at that depth."""
    return rate(groups, buckets) / measured
