"""The one loop over packets of `benchmarks.data.captures`: records of a pcap file follow each other by their lengths.

Not the loop of `kernels.packets.capture`: what is measured should not make the data it is measured on.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.jit import I64, U8, kernel, ro, rw


@kernel(I64, ro(U8), rw(I64))
def walk(data: np.ndarray, starts: np.ndarray) -> int:
    """Fill `starts` with where whole records begin; returns how many there are."""
    place, count, size = np.int64(0), 0, len(data)
    while place + 16 <= size:
        captured = (
            np.int64(data[place + 8])
            | np.int64(data[place + 9]) << 8
            | np.int64(data[place + 10]) << 16
            | np.int64(data[place + 11]) << 24
        )
        if place + 16 + captured > size:
            break
        starts[count] = place
        count += 1
        place += 16 + captured
    return count
