"""Rows of values rolled up to the groups that they are of: entropies, and values of a rank.

Rows come by group, so that a group's rows stand together (`by_group`).
"""

from __future__ import annotations

import numpy as np
from numba import types

from penstock.kernels.jit import F64, I64, kernel, ro, rw

Array = np.ndarray


def by_group(at: Array, numbers: Array) -> Array:
    """An order of rows: by group, and by number inside."""
    if len(at) and int(at[0]) == int(at[-1]) and bool((at == at[0]).all()):
        return np.argsort(numbers, kind="stable")
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    width, groups = (high - low).bit_length(), int(at.max()) + 1 if len(at) else 0
    if width + groups.bit_length() <= 63:
        return np.argsort((at << width) | (numbers - low), kind="stable")
    return np.lexsort((numbers, at))


@kernel(types.void, ro(I64), ro(I64), ro(I64), ro(I64), rw(F64))
def add_entropy(at, counts, weights, total, bits):
    """bits[g] += (c/N) log2(N/c) of every value of a group; in the order of the rows."""
    for i in range(len(at)):
        share = counts[i] / total[at[i]]
        bits[at[i]] -= weights[i] * (share * np.log2(share))


@kernel(types.void, ro(I64), ro(I64), ro(I64), ro(I64), ro(I64), rw(I64))
def of_rank(order, at, numbers, counts, ranks, found):
    """found[g]: the number of the record of rank ranks[g] (from 1 on); `order` is by group and number."""
    group, seen = I64(-1), I64(0)
    for i in range(len(order)):
        row = order[i]
        if at[row] != group:
            group, seen = at[row], I64(0)
        if seen < ranks[group] and seen + counts[row] >= ranks[group]:
            found[group] = numbers[row]
        seen += counts[row]
