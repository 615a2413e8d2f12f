"""Straight lines that the smap paper puts in place of the curve of collision rates (Sec. 5.2)."""

from __future__ import annotations

from penstock.sharing.model.collision import MU

# The line x = α + μ g/b through the low part of the curve (seed smap, Eq. 16).
ALPHA = 0.0267


def linear_rate(groups: float, buckets: float, length: float = 1.0) -> float:
    """x = 0.0267/l_a + 0.354 g/(l_a b), Eq. 16: within some 3 % for 0.2 < g/b < 1 only."""
    return (ALPHA + MU * groups / buckets) / length


def low_rate(groups: float, buckets: float, length: float = 1.0) -> float:
    """x → g/2b: what the curve tends to where groups are few (g/b < 0.2)."""
    return groups / (2.0 * buckets * length)
