"""A word at any place of an array of bytes, in one store: numba would make eight of it."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _store_word(typing_context, out, at, word):
    """out[at : at + 8] = word, the lowest byte first; `out` is a contiguous array of bytes, `word` a uint64."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = context.get_value_type(types.uint64).as_pointer()
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), pointer)
        builder.store(arguments[2], place, align=1)
        return context.get_dummy_value()

    return types.void(out, types.int64, types.uint64), generate


store_word: Any = intrinsic(_store_word)
