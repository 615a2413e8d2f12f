"""Keys that are cut when a relation is rolled up.

Prefixes of IPv4 addresses need only a mask; those of IPv6 addresses, whose bytes stand in dictionaries, are strings of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from penstock.kernels import inet
from penstock.kernels.dictionary import Dictionary, hash_strings
from penstock.relations.component import WHOLE, Component, Tag

Array = np.ndarray
LONGEST = 128  # bits of an address


def finer_component(name: Component, known: Iterable[Component]) -> Component:
    """The component that another one can be cut from: itself, or the shortest prefix that is long enough."""
    found = list(known)
    if name in found:
        return name
    prefixes = [one for one in found if one.tag is Tag.INET6 and one.of == name.of]
    return min(
        (one for one in prefixes if one.length == WHOLE or one.length >= name.length),
        key=lambda one: LONGEST + 1 if one.length == WHOLE else one.length,
    )


def coarser(
    name: Component, drop: int, known: Mapping[Component, Array], dictionaries: dict[Component, Dictionary]
) -> Array:
    """A component of a coarser key; the dictionary of a prefix is added to the others."""
    finer = finer_component(name, known)
    if finer == name:
        return known[name] >> drop << drop if drop else known[name]
    dictionaries[name], codes = cut_dictionary(dictionaries[finer], name.length)
    cut: Array = codes[known[finer]]
    return cut


def cut_dictionary(words: Dictionary, length: int) -> tuple[Dictionary, Array]:
    """A dictionary of the prefixes of these addresses, and for each code + 1 of an address that of its prefix."""
    made, codes = Dictionary(), np.zeros(words.count + 1, np.int64)
    if words.count:
        codes[1:] = made.intern(*_cut(words.data, length)) + 1
    return made, codes


def prefix_hashes(words: tuple[Array, Array], length: int) -> Array:
    """Of every string of a dictionary its hash; of addresses (a length is given) that of their prefixes."""
    offsets, data = words
    return hash_strings(offsets, data if length == WHOLE or not len(data) else _cut(data, length)[1])


def _cut(data: Array, length: int) -> tuple[Array, Array]:
    return inet.network_order(*inet.cut(*inet.from_network_order(data), length))
