"""Records of a Zipf law that come again soon, as those of a log do: locality, measured and drawn (seed locality).

    x_n = x_(n−i) with probability a_i (1 ≤ i ≤ h), else a fresh draw from the popularity P

Table contents depend on both, popularity and what comes close together; draws of a Zipf law have the first alone. The
lags a_i are measured on the relation of a log, by the normal equations of the model for any coding of values: with the
values as unit vectors the covariance of records k apart is the chance that they are equal, less ΣP².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Array = NDArray[np.float64]

LAGS = 64  # h


def lags_of(codes: Ints, most: int = LAGS) -> Array:
    """a_1 to a_h of records, none below 0 and 1 at most together."""
    counts = np.bincount(codes)
    count = len(codes)
    apart = float((counts * (counts - 1.0)).sum()) / (count * (count - 1.0))  # ΣP², of two different records
    equal = np.array([np.mean(codes[k:] == codes[: count - k]) for k in range(1, most + 1)])
    covariance = np.append(1.0 - apart, equal - apart)
    places = np.abs(np.subtract.outer(np.arange(most), np.arange(most)))
    kept = np.ones(most, bool)
    found = np.zeros(most)
    while kept.any():
        within = np.flatnonzero(kept)
        found[:] = 0.0
        found[within] = np.linalg.solve(covariance[places[np.ix_(within, within)]], covariance[1:][within])
        if found.min() >= 0.0:
            break
        kept &= found > 0.0
    return found / max(1.0, float(found.sum()))


def recurring(fresh: Ints, lags: Array, seed: int) -> Ints:
    """Records with these lags; where none is taken, the fresh draw of that place. Their popularity stays the same."""
    rng = np.random.default_rng([seed, 2])
    lag = np.searchsorted(np.cumsum(lags), rng.random(len(fresh)), side="right") + 1
    lag[lag > len(lags)] = 0
    place = np.arange(len(fresh))
    source = np.where(lag <= place, place - lag, place)
    while True:  # each step halves the way to the fresh draw that a record repeats
        further = source[source]
        if np.array_equal(further, source):
            return np.asarray(fresh[source])
        source = further
