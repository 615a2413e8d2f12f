"""What of the machine decides sizes: the level-2 cache of a core."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

L2 = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
USUAL = 1 << 20
UNITS = {"K": 1 << 10, "M": 1 << 20}


@lru_cache(maxsize=1)
def cache_size() -> int:
    """Bytes of the level-2 cache; a usual size where the system does not say."""
    try:
        text = L2.read_text().strip()
    except OSError:
        return USUAL
    digits, unit = text.rstrip("KM"), text[-1:]
    return int(digits) * UNITS.get(unit, 1) if digits.isdigit() else USUAL
