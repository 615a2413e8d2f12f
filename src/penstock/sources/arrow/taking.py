"""Takes some records of a batch that is mapped into memory: nothing else of it is touched.

Arrow believes what a file says of places inside a column: a wrong one would end the process. To check a whole column
would touch all of it, so only what is taken is checked: offsets of text before, its letters and indices of dictionaries
after. Columns of other kinds, which the engine has hardly a use for, are checked whole.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.sources.texts import same_memory

Array = np.ndarray
VIEW = np.dtype("V16")  # a length, and text or where it is


class Taking:
    """Takes records of the batches of one file. Its dictionaries are checked when they are first met."""

    def __init__(self) -> None:
        self._checked: dict[str, pa.Array] = {}

    def take(self, name: str, array: pa.Array, rows: Array, indices: pa.Array) -> pa.Array:
        """The values of a column at these rows, given as numbers and as Arrow's; ArrowInvalid if they are damaged."""
        array.validate()
        if pa.types.is_dictionary(array.type):
            return self._take_encoded(name, array, indices)
        if _variable(array.type):
            _require_offsets(array, rows)
        elif not _fixed(array.type):
            array.validate(full=True)
            if pa.types.is_string_view(array.type):  # Arrow takes none of them
                array = plain_text(array)
        taken = array.take(indices)
        taken.validate(full=True)
        return taken

    def _take_encoded(self, name: str, array: pa.Array, indices: pa.Array) -> pa.Array:
        words, before = array.dictionary, self._checked.get(name)
        if before is None or not same_memory(words, before):
            words.validate(full=True)
            self._checked[name] = words
        found = array.indices.take(indices)
        numbers = found.drop_null().to_numpy()
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(words)):
            raise pa.ArrowInvalid(f"column '{name}' has indices beyond its dictionary")
        return pa.DictionaryArray.from_arrays(found, words, ordered=array.type.ordered, safe=False)


def plain_text(array: pa.Array) -> pa.Array:
    """Views of text, which are valid, as plain text. Arrow also follows views that are NULL."""
    there = array.is_valid().to_numpy(zero_copy_only=False)
    _, views, *texts = array.buffers()
    own = np.frombuffer(views, VIEW)[array.offset : array.offset + len(array)] if len(array) else np.empty(0, VIEW)
    known = [pa.array(there).buffers()[1], pa.py_buffer(np.where(there, own, np.zeros(1, VIEW))), *texts]
    return pa.Array.from_buffers(array.type, len(array), known).cast(pa.string())


def _variable(kind: pa.DataType) -> bool:
    """Whether values lie between offsets."""
    plain = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return bool(plain or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _fixed(kind: pa.DataType) -> bool:
    """Whether each value has its place by its number alone."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind))


def _require_offsets(array: pa.Array, rows: Array) -> None:
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int64 if wide else np.int32)
    begin, end = places[array.offset + rows], places[array.offset + rows + 1]
    if (begin < 0).any() or (end < begin).any() or end.max(initial=0) > (0 if data is None else data.size):
        raise pa.ArrowInvalid("text lies outside its column")
