"""Asks for memory ahead of its use: a loop over keys whose places it knows need not wait for each of them in turn.

Leaves are larger than any cache, and with dozens of them nothing stays there between two chunks: without this, half of
the time of a new group is spent waiting.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

TO_WRITE, SOON, DATA = 1, 3, 1  # arguments of LLVM's instruction


def _prefetch(context: Any, array: Any, at: Any) -> Any:
    """Have the cache line fetched where `array[at]` begins: an item, or a row of an array of two dimensions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        parts = context.make_array(kind)(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        start = builder.ptrtoint(parts.data, arguments[1].type)
        step = builder.extract_value(parts.strides, 0)
        address = builder.inttoptr(builder.add(start, builder.mul(arguments[1], step)), byte)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
        builder.call(call, [address, *(ir.Constant(number, n) for n in (TO_WRITE, SOON, DATA))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch: Any = intrinsic(_prefetch)
