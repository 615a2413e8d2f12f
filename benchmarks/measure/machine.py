"""The machine a benchmark ran on: figures mean little without it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
MEMORY_INFO = Path("/proc/meminfo")
L2_SIZE = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")


def describe() -> dict[str, str | int]:
    """Processor, cores this process may use, memory and L2 cache in bytes (0 where unknown), Python."""
    return {
        "cpu": _field(CPU_INFO, "model name") or platform.processor() or platform.machine(),
        "cores": cores(),
        "memory": memory_bytes(),
        "l2": _size(L2_SIZE),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def cores() -> int:
    """Cores this process may run on, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    text = _field(MEMORY_INFO, "MemTotal").split()
    return int(text[0]) * 1024 if text and text[0].isdigit() else 0


def _field(file: Path, name: str) -> str:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _size(file: Path) -> int:
    try:
        text = file.read_text().strip()
    except OSError:
        return 0
    unit = {"K": 1024, "M": 1024**2}.get(text[-1:], 1)
    digits = text.rstrip("KM")
    return int(digits) * unit if digits.isdigit() else 0
