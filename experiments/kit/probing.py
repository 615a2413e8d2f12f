"""The compiled loop of `experiments.kit.measure`: rows through one direct-mapped table, under one of three policies.

Rows are numbers of groups of the stream; `code` says which of them are one group of the relation, `place` the bucket of
a code. Checked against `support.phantoms` by the tests.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.jit import I32, I64, kernel, ro, rw

NEWEST, FREQUENT, FIRST = 0, 1, 2  # who stays on a collision: the newcomer, the more frequent, the resident
EMPTY = -1


@kernel(I64, ro(I32), ro(I32), ro(I32), I64, rw(I32), rw(I32), rw(I32))
def probe(
    rows: np.ndarray, code: np.ndarray, place: np.ndarray, policy: int,
    resident: np.ndarray, credit: np.ndarray, out: np.ndarray,
) -> int:  # fmt: skip
    """Probe all rows; fill `out` with those passed on, in order, and return how many they are."""
    passed = 0
    for i in range(len(rows)):
        row = rows[i]
        key = code[row]
        bucket = place[key]
        old = resident[bucket]
        if old == EMPTY:
            resident[bucket] = row
            credit[bucket] = 1
        elif code[old] == key:
            credit[bucket] += 1
        else:
            credit[bucket] -= 1
            if policy == NEWEST or (policy == FREQUENT and credit[bucket] == 0):
                resident[bucket] = row
                credit[bucket] = 1
                out[passed] = old
            else:
                out[passed] = row
            passed += 1
    return passed
