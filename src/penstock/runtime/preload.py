"""What a process loads before it forks the workers of tasks: libraries, and kernels, which are compiled by that.

This module loads no other by itself: numpy must not be loaded before `preload` has spoken about huge pages.
"""

from __future__ import annotations

import gc
import importlib

from penstock.runtime.machine import without_huge_pages

MODULES = (
    "pyarrow.compute",
    "pyarrow.parquet",
    "numpy.ma",  # numba asks for it when it first meets an array
    "penstock.runtime.batch.fused",
    "penstock.runtime.batch.merge_job",
    "penstock.runtime.task.task",
    "penstock.runtime.merge.item",
    "penstock.sources.registry",
    "penstock.sinks.registry",
)


def preload(*further: str) -> None:
    """Load what tasks need, and keep it from the collector: looking through everything again costs a task 50 ms."""
    without_huge_pages()
    gc.disable()  # nothing of this is garbage
    for module in (*MODULES, *further):
        importlib.import_module(module)
    importlib.import_module("penstock.kernels.jit").load_kernels()
    gc.freeze()
    gc.enable()
