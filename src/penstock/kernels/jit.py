"""Array types and compiler flags of all kernels: change them here only.

Signatures are explicit, so kernels compile (or load from numba's cache) when their module is imported: in
Spark that is before the Python workers fork (`runtime.daemon`).  Inputs are declared read-only: numba
accepts writable arrays there as well, so Arrow's immutable buffers enter without a copy and without a second
compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types

I64, U64, F64, I32, U8 = types.int64, types.uint64, types.float64, types.int32, types.uint8


def ro(dtype: Any, dimensions: int = 1) -> Any:
    """A contiguous array that the kernel only reads."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def rw(dtype: Any, dimensions: int = 1) -> Any:
    """A contiguous array that the kernel may write."""
    return types.Array(dtype, dimensions, "C")


def kernel(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile for exactly this signature, cached on disk, without the interpreter lock."""
    decorate: Callable[..., Any] = njit([result(*arguments)], cache=True, nogil=True, error_model="numpy")
    return decorate


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """A small function that is compiled into the kernels that call it."""
    compiled: Callable[..., Any] = njit(function, inline="always")
    return compiled
