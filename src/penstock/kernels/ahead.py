"""Compile all kernels into numba's cache, on all cores: `python -m penstock.kernels.ahead`.

Otherwise each is compiled when it is first called, by every process that does so before the first has ended.
"""

from __future__ import annotations

import importlib
import pkgutil
from concurrent.futures import ProcessPoolExecutor

from penstock import kernels
from penstock.kernels.jit import load_kernels


def main() -> None:
    with ProcessPoolExecutor() as workers:
        list(workers.map(load, names()))


def names() -> list[str]:
    """All modules of kernels, in all rooms."""
    return [module.name for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")]


def load(name: str) -> None:
    importlib.import_module(name)
    load_kernels()


if __name__ == "__main__":
    main()
