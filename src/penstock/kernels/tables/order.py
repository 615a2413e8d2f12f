"""The canonical hash of a group and the order of groups in a segment.

The hash is over the group's own values (strings by their bytes), not over codes or packed words: it is the
same in every task, plan and layout, so that blocks of any two tasks meet in the same slot.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.hashing import combine
from penstock.kernels.jit import I32, I64, U64, kernel, ro, rw

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


@kernel(types.void, ro(U64), ro(I64), ro(I32), rw(I64), rw(I32), rw(I32))
def order_groups(hashes, window, slots, cuts, cells, order):
    """Counting sort by (window index, slot); cuts[w · number of slots + s] is where that part begins.

    `slots` are by the top bits of the hash (`slot_table`, whose last entry is their number), `window` is empty if there
    is one only; `cells` is scratch, a number for each group.
    """
    n, alone, count = hashes.shape[0], window.shape[0] == 0, int64(slots[slots.shape[0] - 1])
    for i in range(n):
        cell = int64(slots[hashes[i] >> uint64(SLOT_SHIFT)])
        if not alone:
            cell += window[i] * count
        cells[i] = cell
        cuts[cell + 1] += 1
    for c in range(1, cuts.shape[0]):
        cuts[c] += cuts[c - 1]
    # Each part is filled from its beginning, which moves on; at last every beginning is where its neighbour's was.
    for i in range(n):
        order[cuts[cells[i]]] = i
        cuts[cells[i]] += 1
    for c in range(cuts.shape[0] - 1, 0, -1):
        cuts[c] = cuts[c - 1]
    cuts[0] = 0


def slot_table(slots: int) -> Array:
    """The slot of a hash by its top bits, and the number of slots behind them."""
    return np.append(np.arange(1 << (64 - SLOT_SHIFT)) % slots, slots).astype(np.int32)


def slot_of(hashes: Array, table: Array) -> Array:
    """The slot of each hash by a `slot_table`, as `order_groups` takes it."""
    return table[(hashes >> np.uint64(SLOT_SHIFT)).astype(np.intp)]
