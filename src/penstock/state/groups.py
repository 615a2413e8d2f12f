"""Finished groups as canonical columns: what tables hand to segments, segments to merges, merges to results.

Keys are components (see `kernels.pack`) with the values themselves: integers, order bits of floats, IPv4
numbers, codes with their dictionary beside them, NULL flags. Nothing here depends on the packed layout.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.kernels.dictionary import Dictionary
from penstock.kernels.order import hash_codes, hash_values
from penstock.sharing.plan import State, column_of, value_component

Array = np.ndarray


@dataclass
class Groups:
    """`panes` (once merged: windows) by number, key `components` by name, count(*) and states of a few words."""

    panes: Array
    components: dict[str, Array]
    dictionaries: Mapping[str, Dictionary]
    count: Array
    states: dict[State, tuple[Array, ...]]

    def __len__(self) -> int:
        return len(self.count)


def canonical_hashes(components: Mapping[str, Array], by_code: Mapping[str, Array], rows: int) -> Array:
    """One hash per group over its key values; independent of codes, layout, plan and task.

    `by_code` has the hashes of the strings that codes stand for."""
    hashes = np.zeros(rows, np.uint64)
    for name, values in components.items():
        if name in by_code:
            # Below the base is no string: a NULL, or an address that is not IPv6.
            hash_codes(values - code_base(name), by_code[name], hashes)
        else:
            hash_values(values, hashes)
    return hashes


def code_base(component: str) -> int:
    """The value that stands for code 0: address codes leave 0 for "not IPv6"."""
    return 1 if component.startswith("inet6") else 0


def blank_nulls(components: dict[str, Array], strings: Collection[str]) -> None:
    """A NULL has no value: make it zero whatever the base of its field, and no string rather than code 0."""
    for flag, nulls in components.items():
        if flag.startswith("null:") and nulls.any():
            gone, column = nulls != 0, column_of(flag)
            components[value_component(column)][gone] = -1 if column in strings else 0
