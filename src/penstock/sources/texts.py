"""Arrow's strings as what kernels take: offsets and bytes, without a copy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

Array = np.ndarray


def text_bytes(strings: pa.Array) -> tuple[Array, Array]:
    """(offsets, bytes) of an Arrow string array without copying the bytes."""
    wide = pa.types.is_large_string(strings.type)
    kind = np.int64 if wide else np.int32
    _, offsets, data = strings.buffers()
    if not len(strings):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    start = np.frombuffer(offsets, kind)[strings.offset : strings.offset + len(strings) + 1].astype(np.int64)
    return start, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def same_memory(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays are the same memory. A converted dictionary is kept alive, so its address is its own."""
    return (
        len(one) == len(other)
        and one.offset == other.offset
        and [b and b.address for b in one.buffers()] == [b and b.address for b in other.buffers()]
    )
