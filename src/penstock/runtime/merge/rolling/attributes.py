"""Codes of grouping attributes: of those that rows have, and of prefixes that follow from them.

Attributes of one column (`src/16, src/48`) have components in common, and are coded as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import numpy as np

from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import rolling as kernels
from penstock.logical.expressions import Prefix
from penstock.logical.query import Attribute
from penstock.relations.component import Component, Tag
from penstock.relations.layout import Part
from penstock.relations.relation import attribute_parts, joined_parts
from penstock.runtime.merge.prefixes import coarser
from penstock.runtime.merge.rolling.coding import Components, Single, coded, narrow
from penstock.state.segments.groups import CodedColumns, KeyColumn

Array = np.ndarray
Parts = tuple[Part, ...]


class Attributes:
    """Attributes of rows, each coded when it is first asked for. `column` gives a component of all rows, `dictionaries`
    grow by those of IPv6 prefixes; columns that are `given` have codes already."""

    def __init__(
        self,
        known: Iterable[Attribute],
        column: Callable[[Component], Array],
        dictionaries: Mapping[Component, Dictionary],
        given: CodedColumns,
    ) -> None:
        self._known, self._column = parts_by_column(tuple(known)), column
        self.dictionaries, self._given = dict(dictionaries), given
        self._coded: dict[tuple[str, Parts], Single] = {}

    def coded(self, attributes: Iterable[Attribute]) -> dict[str, Single]:
        """By column."""
        return {column: self._one(column, parts) for column, parts in parts_by_column(tuple(attributes)).items()}

    def _one(self, column: str, parts: Parts) -> Single:
        if (column, parts) not in self._coded:
            known = self._known[column]
            self._coded[column, parts] = (
                self._read(column, parts) if parts == known else self._cut(column, known, parts)
            )
        return self._coded[column, parts]

    def _read(self, column: str, parts: Parts) -> Single:
        if column in self._given:
            codes, known = self._given[column]
            if known.values.keys() == {part.component for part in parts}:
                return Single(narrow(codes, known.size), known)
        codes, values = joined_codes({part.component: self._column(part.component) for part in parts})
        return Single(codes, KeyColumn(values))

    def _cut(self, column: str, known: Parts, parts: Parts) -> Single:
        """What is coarser, by the values of what is there."""
        finer = self._one(column, known)
        if parts not in finer.column.coarser:
            cut = {p.component: coarser(p.component, p.drop, finer.column.values, self.dictionaries) for p in parts}
            mapping, values = joined_codes(cut)
            kept = mapping, KeyColumn(values)
            if not any(self.dictionaries[p.component].count for p in parts if p.component in self.dictionaries):
                finer.column.coarser[parts] = kept
        else:
            kept = finer.column.coarser[parts]
            for part in parts:
                if part.component.tag is Tag.INET6:
                    self.dictionaries.setdefault(part.component, Dictionary())
        mapping, coarse = kept
        codes = np.empty(len(finer.codes), mapping.dtype)
        kernels.through(mapping, finer.codes, codes)
        return Single(codes, coarse)


@lru_cache(maxsize=1024)  # the same in every batch
def parts_by_column(attributes: tuple[Attribute, ...]) -> Mapping[str, Parts]:
    """The parts of a key, by the column that they are of."""
    found: dict[str, list[Attribute]] = {}
    for attribute in attributes:
        name = attribute.column.name if isinstance(attribute, Prefix) else attribute.name
        found.setdefault(name, []).append(attribute)
    return {name: joined_parts(p for a in same for p in attribute_parts(a)) for name, same in found.items()}


def joined_codes(columns: Components) -> tuple[Array, Components]:
    """Codes of the components of a column together, and the components of each code. Values come first; NULL and IPv6
    flags mostly are zero."""
    value, *flags = columns
    codes, found = coded(columns[value])
    values: Components = {value: found}
    for name in flags:
        column = columns[name]
        if not column.any():
            values[name] = np.zeros(len(found), np.int64)
            continue
        more, several = coded(column)
        codes, found = coded(codes.astype(np.int64) * len(several) + more)
        before, own = np.divmod(found, len(several))
        values = {**{one: known[before] for one, known in values.items()}, name: several[own]}
    return codes, values
