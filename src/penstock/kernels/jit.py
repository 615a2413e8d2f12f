"""Array types and compiler flags of all kernels: change them here only.

Signatures are explicit, so kernels compile (or load from numba's cache) when their module is imported: in
Spark that is before the Python workers fork (`runtime.spark.daemon`).  Inputs are declared read-only: numba
accepts writable arrays there as well, so Arrow's immutable buffers enter without a copy and without a second
compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types

I64, U64, F64, I32, U32, U8 = types.int64, types.uint64, types.float64, types.int32, types.uint32, types.uint8
U16 = types.uint16


def ro(dtype: Any, dimensions: int = 1) -> Any:
    """A contiguous array that the kernel only reads."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def rw(dtype: Any, dimensions: int = 1) -> Any:
    """A contiguous array that the kernel may write."""
    return types.Array(dtype, dimensions, "C")


# Counting references at every call of a small function that takes an array cost the decoder of packets 170 of 180 ns
# a packet; numba has no public name for leaving it out.
UNCOUNTED: dict[str, Any] = {"_nrt": False}


def kernel(result: Any, *arguments: Any, allocates: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile for exactly this signature, cached on disk, without the interpreter lock.

    Only kernels that make arrays count references.
    """
    counting = {} if allocates else UNCOUNTED
    decorate: Callable[..., Any] = njit([result(*arguments)], cache=True, nogil=True, error_model="numpy", **counting)
    return decorate


def kernel_for(*signatures: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A kernel for several signatures, (result, arguments …) each: the same loop over different types."""
    compiled = [result(*arguments) for result, *arguments in signatures]
    decorate: Callable[..., Any] = njit(compiled, cache=True, nogil=True, error_model="numpy", **UNCOUNTED)
    return decorate


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """A small function that is compiled into the kernels that call it."""
    compiled: Callable[..., Any] = njit(function, inline="always", **UNCOUNTED)
    return compiled


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call. LLVM inlines it: numba's own inlining makes large kernels compile much longer."""
    compiled: Callable[..., Any] = njit(function, error_model="numpy", forceinline=True, **UNCOUNTED)
    return compiled
