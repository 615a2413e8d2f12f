"""Array types and compiler flags of all kernels: change them here only.

Signatures are explicit, so kernels compile (or load from numba's cache) when their module is imported: in
Spark that is before the Python workers fork (`runtime.daemon`).  Inputs are declared read-only: numba
accepts writable arrays there as well, so Arrow's immutable buffers enter without a copy and without a second
compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit, types

F = TypeVar("F", bound=Callable[..., Any])

I64, U64, F64, I32, U8 = types.int64, types.uint64, types.float64, types.int32, types.uint8


def ro(dtype: Any, dimensions: int = 1) -> Any:
    """A contiguous array that the kernel only reads."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def rw(dtype: Any, dimensions: int = 1) -> Any:
    """A contiguous array that the kernel may write."""
    return types.Array(dtype, dimensions, "C")


def kernel(result: Any, *arguments: Any) -> Callable[[F], F]:
    """Compile for exactly this signature, cached on disk, without the interpreter lock."""
    return njit([result(*arguments)], cache=True, nogil=True, error_model="numpy")  # type: ignore[no-any-return]


def inline(function: F) -> F:
    """A small function that is compiled into the kernels that call it."""
    return njit(function, inline="always", cache=False)  # type: ignore[no-any-return]
