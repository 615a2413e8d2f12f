"""Finished groups as canonical columns: what tables hand to segments, segments to merges, merges to results.

Keys are components (see `kernels.tables.pack`) with the values themselves: integers, order bits of floats, IPv4
numbers, codes with their dictionary beside them, NULL flags. Nothing here depends on the packed layout.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from penstock.aggregates.base import State
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.numbering import runs_of
from penstock.kernels.tables.order import hash_codes, hash_values
from penstock.relations.component import Component, Tag, value_component
from penstock.relations.layout import Part

Array = np.ndarray


@dataclass(frozen=True)
class KeyColumn:
    """The values of a key column that many groups, of several queries, have: the components of each, by its code.

    What is made of them is kept: text by prefix length (`printed`), and codes of coarser values with those by the parts
    of their key (`coarser`)."""

    values: Mapping[Component, Array]
    printed: dict[int, Any] = field(default_factory=dict)
    coarser: dict[tuple[Part, ...], tuple[Array, KeyColumn]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(next(iter(self.values.values())))

    @cached_property
    def varying(self) -> frozenset[Component]:
        """Components that are not all zero."""
        return frozenset(name for name, values in self.values.items() if values.any())


CodedColumns = Mapping[str, tuple[Array, KeyColumn]]  # by name


@dataclass(frozen=True)
class Groups:
    """`panes` (once merged: windows) by number, key `components` by name, count(*) and states of a few words.

    Of key columns that are known by code, `coded` has the code of each group; the components are there as well."""

    panes: Array
    components: dict[Component, Array]
    dictionaries: Mapping[Component, Dictionary]
    count: Array
    states: dict[State, tuple[Array, ...]]
    coded: CodedColumns = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.count)

    @cached_property
    def runs(self) -> Array:
        """Where each run of equal panes begins."""
        return runs_of(self.panes)

    def take(self, index: Array) -> Groups:
        """Some of the groups, or some of them several times."""
        return Groups(
            self.panes[index],
            {name: values[index] for name, values in self.components.items()},
            self.dictionaries,
            self.count[index],
            {state: tuple(word[index] for word in words) for state, words in self.states.items()},
            {name: (codes[index], column) for name, (codes, column) in self.coded.items()},
        )


def canonical_hashes(components: Mapping[Component, Array], by_code: Mapping[Component, Array], rows: int) -> Array:
    """One hash per group over its key values; independent of codes, layout, plan and task.

    `by_code` has the hashes of the strings that codes stand for."""
    hashes = np.zeros(rows, np.uint64)
    for name, values in components.items():
        if name in by_code:
            # Below the base is no string: a NULL, or an address that is not IPv6.
            hash_codes(values - name.code_base, by_code[name], hashes)
        else:
            hash_values(values, hashes)
    return hashes


def blank_nulls(components: dict[Component, Array], strings: Collection[str]) -> None:
    """A NULL has no value: make it zero whatever the base of its field, and no string rather than code 0."""
    for flag, nulls in components.items():
        if flag.tag is Tag.NULL and nulls.any():
            gone, column = nulls != 0, flag.of
            components[value_component(column)][gone] = -1 if column in strings else 0
