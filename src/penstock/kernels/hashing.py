"""The 64-bit mix behind tables, dictionaries and hash slots.

Slots are part of the state's format: a change of these constants needs a new segment version.
"""

from __future__ import annotations

from numba import uint64

from penstock.kernels.jit import inline

SEED = 0x9E3779B97F4A7C15


@inline
def mix(h):
    """A bijection of 64 bits in which every input bit reaches every output bit."""
    h ^= h >> uint64(32)
    h *= uint64(0xD6E8FEB86659FD93)
    h ^= h >> uint64(32)
    h *= uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> uint64(32))


@inline
def combine(h, word):
    """Fold one more word into a running hash; the order of words matters."""
    return mix(h * uint64(0x9E3779B97F4A7C15) + word)


@inline
def hash_bytes(data, start, stop):
    """Hash of data[start:stop]; the length is part of it."""
    h = uint64(0x9E3779B97F4A7C15) ^ uint64(stop - start)
    word = uint64(0)
    shift = uint64(0)
    for at in range(start, stop):
        word |= uint64(data[at]) << shift
        shift += uint64(8)
        if shift == uint64(64):
            h = mix(h ^ word) + uint64(0x9E3779B97F4A7C15)
            word = uint64(0)
            shift = uint64(0)
    return mix(h ^ word)
