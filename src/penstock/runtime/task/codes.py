"""Codes of strings and addresses: the dictionaries of one task.

A string becomes its code in a dictionary. An IPv4 address is its own number; an IPv6 address, and every prefix of one
that a query groups by, has a code. Where a column comes dictionary-encoded, each value of its dictionary is converted
once, not once for each record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa

from penstock.kernels import inet
from penstock.kernels.dictionary import Dictionary
from penstock.logical.types import Kind, Type
from penstock.relations.component import Component, inet6_component, value_component
from penstock.runtime.expressions.operands import truths
from penstock.runtime.task.arrow import (
    Ingested,
    encoded,
    integers,
    only_valid,
    present,
    taken,
    view,
)
from penstock.sources.base import ADDRESS
from penstock.sources.texts import same_memory, text_bytes

Array = np.ndarray
Converted = tuple[Array, ...]


class Codes:
    """Dictionaries for the columns of one task; `reset` empties them."""

    def __init__(self, types: Mapping[str, Type], prefixes: Iterable[tuple[str, int]]) -> None:
        self._strings = {name: value_component(name) for name, kind in types.items() if kind.kind is Kind.STRING}
        self._inet6 = {name: inet6_component(name) for name, kind in types.items() if kind.kind is Kind.INET}
        self._prefixes: dict[str, dict[int, Component]] = {}
        for name, length in sorted(prefixes):
            self._prefixes.setdefault(name, {})[length] = inet6_component(name, length)
        self.reset()

    def reset(self) -> None:
        cut = (component for lengths in self._prefixes.values() for component in lengths.values())
        self.dictionaries = {name: Dictionary() for name in (*self._strings.values(), *self._inet6.values(), *cut)}
        self._maps: dict[Component, tuple[pa.Array, Converted]] = {}
        self._prefix_codes: dict[Component, Array] = {}

    @property
    def nbytes(self) -> int:
        return sum(dictionary.nbytes for dictionary in self.dictionaries.values())

    def strings(self, name: str, array: pa.Array) -> Ingested:
        """Codes of strings; NULLs have code 0."""
        valid, component = present(array), self._strings[name]
        indices, values = encoded(array)
        (codes,) = self._mapped(component, values, lambda strings: (self._intern(component, *text_bytes(strings)),))
        return Ingested(taken(codes, indices, valid), valid, strings=array)

    def addresses(self, name: str, array: pa.Array) -> Ingested:
        """A column of addresses: as integers, as IPv4 numbers with the bytes of IPv6 ones, or as text."""
        valid = present(array)
        if pa.types.is_integer(array.type):
            return _numbered(array, valid)
        column = self._structs(name, array, valid) if array.type == ADDRESS else self._texts(name, array, valid)
        if column.inet6 is not None:
            for length, component in self._prefixes.get(name, {}).items():
                column.prefixes[length] = self._cut(name, length, component)[column.inet6]
        return column

    def _texts(self, name: str, array: pa.Array, valid: Array) -> Ingested:
        indices, values = encoded(array)
        component = self._inet6[name]
        numbers, codes, wrong = self._mapped(component, values, lambda texts: self._parse(component, texts))
        bad = taken(wrong, indices, valid).astype(bool)
        inet6 = taken(codes, indices, valid) if codes.any() else None
        return Ingested(taken(numbers, indices, valid), valid, bad=only_valid(bad, valid), inet6=inet6)

    def _structs(self, name: str, array: pa.Array, valid: Array) -> Ingested:
        numbers = view(array.field(0), np.uint32).astype(np.int64)
        if array.field(1).null_count == len(array):
            return Ingested(numbers, valid)
        component, long = self._inet6[name], array.field(1)
        six = truths(long.is_valid())
        whole = np.frombuffer(long.buffers()[1], np.uint8).reshape(-1, 16)[long.offset : long.offset + len(long)]
        data = whole[six].reshape(-1)
        codes = np.zeros(len(numbers), np.int64)
        codes[six] = self._intern(component, np.arange(0, len(data) + 1, 16), data) + component.code_base
        return Ingested(numbers, valid, inet6=codes)

    def _parse(self, component: Component, texts: pa.Array) -> Converted:
        """(IPv4 number, IPv6 code + 1, bad) of each text."""
        version, high, low = inet.parse(*text_bytes(texts))
        six = version == 6
        codes = np.zeros(len(version), np.int64)
        if six.any():
            codes[six] = self._intern(component, *inet.network_order(high[six], low[six])) + component.code_base
        return np.where(version == 4, low, 0).astype(np.int64), codes, (version == 0).astype(np.int64)

    def _cut(self, name: str, length: int, component: Component) -> Array:
        """For code + 1 of each IPv6 address the code + 1 of its prefix. Only addresses that are new are cut."""
        whole = self.dictionaries[self._inet6[name]]
        known = self._prefix_codes.get(component, np.zeros(1, np.int64))
        if len(known) <= whole.count:
            new = whole.data[16 * (len(known) - 1) :]
            cut = inet.cut(*inet.from_network_order(new), length)
            codes = self._intern(component, *inet.network_order(*cut)) + component.code_base
            known = self._prefix_codes[component] = np.concatenate([known, codes])
        return known

    def _intern(self, component: Component, start: Array, data: Array) -> Array:
        return self.dictionaries[component].intern(start, data)

    def _mapped(self, component: Component, values: pa.Array, convert: Callable[[pa.Array], Converted]) -> Converted:
        """Convert a dictionary's values once: neighbouring chunks of a file mostly share it."""
        known = self._maps.get(component)
        if known is None or not same_memory(known[0], values):
            known = self._maps[component] = (values, convert(values))
        return known[1]


def _numbered(array: pa.Array, valid: Array) -> Ingested:
    """IPv4 addresses that come as integers."""
    result = integers(array, valid, 64)
    outside = (result.numbers < 0) | (result.numbers >> 32 != 0)
    result.bad = only_valid(outside if result.bad is None else outside | result.bad, valid)
    result.numbers = np.where(outside, 0, result.numbers)
    return result
