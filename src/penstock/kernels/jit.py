"""Array types and compiler flags of all kernels: change them here only.

Signatures are explicit. A kernel is compiled for them (or loaded from numba's cache) when it is first called: a short
query needs a dozen of the hundred kernels. Processes that fork workers load all of them before (`load_kernels`). Inputs
are declared read-only: numba accepts writable arrays there as well, so Arrow's immutable buffers enter without a copy
and without a second compilation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.caching import FunctionCache, NullCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

from penstock.kernels.store import kept

I64, U64, F64, I32, U32, U8 = types.int64, types.uint64, types.float64, types.int32, types.uint32, types.uint8
U16 = types.uint16


def ro(dtype: Any, dimensions: int = 1) -> Any:
    """A contiguous array that the kernel only reads."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def rw(dtype: Any, dimensions: int = 1) -> Any:
    """A contiguous array that the kernel may write."""
    return types.Array(dtype, dimensions, "C")


def together(column: Any, columns: int) -> Any:
    """Some columns in a tuple: a loop over them is unrolled."""
    return types.UniTuple(column, columns)


# Counting references at every call of a small function that takes an array cost the decoder of packets 170 of 180 ns
# a packet; numba has no public name for leaving it out.
UNCOUNTED: dict[str, Any] = {"_nrt": False}


_loading = threading.RLock()
_trying = threading.local()


class _Loaded(FunctionCache):
    """Kernels that were compiled before. They need numba's runtime; numba makes all of its compiler ready as well, a
    tenth of a second in every process."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        rtsys.initialize(target)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target)


class Kernel(CPUDispatcher):
    """A function that is compiled for its declared signatures when it is first called, from Python or another kernel,
    and for no others."""

    declared: tuple[Any, ...] = ()
    _can_compile: bool  # numba's
    _cache: Any  # numba's

    def load(self) -> None:
        with _loading:
            if self._can_compile:
                for signature in self.declared:
                    self._compile_declared(signature)
                self.disable_compile()

    def _compile_declared(self, signature: Any) -> None:
        try:
            self.compile(signature)
        except OSError:  # of the place where kernels are kept: no room, perhaps
            self._cache = NullCache()
            self.compile(signature)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """No signature fits, as none was compiled when the call began: numba calls what is returned."""
        if getattr(_trying, "kernel", None) is self:
            return super()._compile_for_args(*args, **kws)  # type: ignore[misc]
        self.load()  # unless another thread has
        return self._try

    def _try(self, *args: Any) -> Any:
        """The call again; if no signature fits now, none does."""
        _trying.kernel = self
        try:
            return self(*args)
        finally:
            _trying.kernel = None

    def get_call_template(self, args: Any, kws: Any) -> Any:
        self.load()
        return super().get_call_template(args, kws)


_kernels: list[Kernel] = []


def load_kernels() -> None:
    """Compile or load all kernels of the modules that were imported."""
    for one in _kernels:
        one.load()


def _declared(signatures: list[Any], counting: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        made = kept(lambda cache: njit(cache=cache, nogil=True, error_model="numpy", **counting)(function))
        made.__class__ = Kernel
        made.declared = tuple(signatures)
        if type(made._cache) is FunctionCache:
            made._cache.__class__ = _Loaded
        _kernels.append(made)
        return made  # type: ignore[no-any-return]

    return decorate


def kernel(result: Any, *arguments: Any, allocates: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile for exactly this signature, cached on disk, without the interpreter lock.

    Only kernels that make arrays count references.
    """
    return _declared([result(*arguments)], {} if allocates else UNCOUNTED)


def kernel_for(*signatures: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A kernel for several signatures, (result, arguments …) each: the same loop over different types."""
    return _declared([result(*arguments) for result, *arguments in signatures], UNCOUNTED)


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """A small function that is compiled into the kernels that call it."""
    compiled: Callable[..., Any] = njit(function, inline="always", **UNCOUNTED)
    return compiled


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call. LLVM inlines it: numba's own inlining makes large kernels compile much longer."""
    compiled: Callable[..., Any] = njit(function, error_model="numpy", forceinline=True, **UNCOUNTED)
    return compiled
