"""Values of equality columns as codes: a table's values get codes, a record's value finds its own.

| values | found by |
| --- | --- |
| numbers, times, booleans, doubles as order bits | place, where they leave few gaps; else a hash table |
| texts | a dictionary; once for each value of the records' dictionary |
| addresses, also cut ones | a hash table |
| several of these | the codes of the first two as one number, and so on |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.kernels.dictionary import Dictionary
from penstock.kernels.lookups.codes import (
    EMPTY,
    fill_addresses,
    fill_words,
    find_addresses,
    find_dense,
    find_words,
    slot_count,
)
from penstock.runtime.expressions.operands import Addresses, Array, order_numbers, plain, text_indices
from penstock.sources.texts import same_memory, text_bytes

GAPS = 8  # places for each key, at most, where keys are found by their place
FEW = 4096  # places that are always worth it


class Coder(Protocol):
    """Codes [0, count) of a table's values."""

    count: int

    def find(self, values: Any) -> Array:
        """The code of each value of records; −1 where the table does not have it."""
        ...


def coded(values: Any) -> tuple[Coder, Array]:
    """A coder for the values of a table, and their codes."""
    if isinstance(values, pa.Array):
        return _coded_texts(values)
    return _coded_addresses(values) if isinstance(values, Addresses) else _coded_words(words_of(values))


def words_of(values: Array) -> Array:
    """Numbers of any kind as int64 that are equal, and below each other, where the values are."""
    if values.dtype.kind == "f":
        return order_numbers(values)
    return np.ascontiguousarray(values, np.int64)


# -- numbers


def _coded_words(words: Array) -> tuple[Words, Array]:
    keys, codes = np.unique(words, return_inverse=True)
    return Words(keys), codes


class Words:
    """Codes of numbers, in their order."""

    def __init__(self, keys: Array) -> None:
        self.count = len(keys)
        self._least = int(keys[0]) if len(keys) else 0
        span = int(keys[-1]) - self._least + 1 if len(keys) else 0
        self._dense = span <= max(FEW, GAPS * self.count)
        if self._dense:
            self._table = np.full(span, EMPTY, np.int64)
            self._table[keys - self._least] = np.arange(self.count)
        else:
            self._table = np.full((slot_count(self.count), 2), EMPTY, np.int64)
            fill_words(keys, self._table)

    def find(self, values: Array) -> Array:
        words = words_of(values)
        codes = np.empty(len(words), np.int64)
        if self._dense:
            find_dense(words, self._least, self._table, codes)
        else:
            find_words(words, self._table, codes)
        return codes


# -- addresses


def _coded_addresses(values: Addresses) -> tuple[Coder, Array]:
    codes, first = numbered(values)
    return AddressCodes(Addresses(values.version[first], values.high[first], values.low[first])), codes


def numbered(values: Addresses) -> tuple[Array, Array]:
    """(number of each address among the different ones in order, where each of those stands first)."""
    order = np.lexsort((values.low, values.high, values.version))
    version, high, low = values.version[order], values.high[order], values.low[order]
    new = np.ones(len(order), bool)
    new[1:] = (version[1:] != version[:-1]) | (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(new) - 1
    return codes, order[new]


class AddressCodes:
    """Codes of addresses, in their order."""

    def __init__(self, keys: Addresses) -> None:
        self.count = len(keys.version)
        self._slots = np.zeros((slot_count(self.count), 4), np.uint64)
        fill_addresses(keys.version, keys.high, keys.low, self._slots)

    def find(self, values: Addresses) -> Array:
        codes = np.empty(len(values.version), np.int64)
        find_addresses(
            np.ascontiguousarray(values.version), np.ascontiguousarray(values.high), np.ascontiguousarray(values.low),
            self._slots, codes,
        )  # fmt: skip
        return codes


# -- texts


def _coded_texts(strings: pa.Array) -> tuple[Coder, Array]:
    words = Dictionary()
    # The dictionary may have words that no row has any more.
    used, codes = np.unique(PerText(lambda texts: words.intern(*text_bytes(texts)))(strings), return_inverse=True)
    return Texts(words.only(used)), codes


class Texts:
    """Codes of texts, in the order of their rows."""

    def __init__(self, words: Dictionary) -> None:
        self.count = words.count
        self._find = PerText(lambda texts: words.find(*text_bytes(texts)))

    def find(self, values: pa.Array) -> Array:
        return self._find(values)


class PerText:
    """Numbers of texts, once for each value of a dictionary: neighbouring chunks mostly share theirs."""

    def __init__(self, function: Callable[[pa.Array], Array]) -> None:
        self._function = function
        self._last: tuple[pa.Array, Array] | None = None

    def __call__(self, strings: pa.Array) -> Array:
        if not pa.types.is_dictionary(strings.type):
            return self._function(plain(strings))
        last, words = self._last, strings.dictionary
        if last is None or not same_memory(last[0], words):
            # One more number, for NULLs.
            last = self._last = (words, np.append(self._function(plain(words)), EMPTY))
        numbers: Array = last[1][text_indices(strings, len(words))]
        return numbers


# -- several columns


class Keys:
    """The codes of rows by all their equality columns."""

    def __init__(self, columns: Sequence[Any]) -> None:
        self._first, self.codes = coded(columns[0])
        self.count = self._first.count
        self._further: list[tuple[Coder, Words]] = []
        for values in columns[1:]:
            coder, codes = coded(values)
            pairs, self.codes = _coded_words(self.codes * coder.count + codes)
            self._further.append((coder, pairs))
            self.count = pairs.count

    def find(self, columns: Sequence[Any]) -> Array:
        """The code of each record, of which these are the values; −1 where no row has them."""
        codes = self._first.find(columns[0])
        for values, (coder, pairs) in zip(columns[1:], self._further, strict=True):
            other = coder.find(values)
            both = np.where((codes < 0) | (other < 0), EMPTY, codes * coder.count + other)
            codes = pairs.find(both)
        return codes
