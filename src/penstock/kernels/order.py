"""The canonical hash of a group and the order of groups in a segment.

The hash is over the group's own values (strings by their bytes), not over codes or packed words: it is the
same in every task, plan and layout, so that blocks of any two tasks meet in the same slot.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.hashing import combine
from penstock.kernels.jit import I64, U64, kernel, ro, rw

Array = np.ndarray
SLOT_SHIFT = 56  # slots are the top 8 bits: up to 256 of them; the bits below split a slot into passes


@kernel(types.void, ro(I64), rw(U64))
def hash_values(values, hashes):
    for i in range(values.shape[0]):
        hashes[i] = combine(hashes[i], uint64(values[i]))


@kernel(types.void, ro(I64), ro(U64), rw(U64))
def hash_codes(codes, by_code, hashes):
    """Fold in the string's hash; a negative code (no string) folds in zero."""
    for i in range(codes.shape[0]):
        hashes[i] = combine(hashes[i], by_code[codes[i]] if codes[i] >= 0 else uint64(0))


@kernel(types.void, ro(U64), ro(I64), I64, I64, rw(I64), rw(I64), allocates=True)
def order_groups(hashes, window, windows, slots, cuts, order):
    """Counting sort by (window index, slot); cuts[w·slots + s] is where that part begins."""
    n = hashes.shape[0]
    for i in range(n):
        slot = int64(hashes[i] >> uint64(SLOT_SHIFT)) % slots
        cuts[window[i] * slots + slot + 1] += 1
    for c in range(windows * slots):
        cuts[c + 1] += cuts[c]
    at = cuts.copy()
    for i in range(n):
        c = window[i] * slots + int64(hashes[i] >> uint64(SLOT_SHIFT)) % slots
        order[at[c]] = i
        at[c] += 1


def slot_of(hashes: Array, slots: int) -> Array:
    """The slot of each hash, as `order_groups` computes it."""
    return ((hashes >> np.uint64(SLOT_SHIFT)) % np.uint64(slots)).astype(np.uint8)
