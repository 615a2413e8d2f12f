"""Keys of a task: the components that its relations are grouped by, and where they stand in packed words.

    records, masks ──► components and their ranges ──► layout ──► words

Components are values, NULL flags, codes, pane numbers and sieves (`relations.component`). A task measures the range of
each, gives it a bit field, and packs every chunk once for all relations. When a value does not fit its field, the task
asks for a new layout. Ranges of the worker's tasks before make that rare.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.kernels.tables.pack import component_range, pane_number
from penstock.logical.types import Kind
from penstock.logical.window import Panes
from penstock.relations.component import Component, Tag
from penstock.relations.layout import Layout, Range, lay_out, union
from penstock.relations.relation import Relation
from penstock.runtime.tables.chunk import pack_words
from penstock.runtime.task import worker_cache
from penstock.runtime.task.columns import Records

Array = np.ndarray
Masks = Mapping[str, Array | None]


@dataclass(frozen=True)
class Chosen:
    """Records before they are packed: which ones are for which relation (None: all), components and their ranges."""

    masks: Masks
    components: dict[Component, Array]
    ranges: dict[Component, Range]
    rows: int

    def component(self, name: Component) -> Array:
        """One that is left out is zero."""
        return self.components[name] if name in self.components else np.zeros(self.rows, np.int64)

    def cut(self, start: int, stop: int) -> Chosen:
        """Copies of some records in a row."""
        masks = {name: None if mask is None else mask[start:stop].copy() for name, mask in self.masks.items()}
        components = {name: values[start:stop].copy() for name, values in self.components.items()}
        return Chosen(masks, components, self.ranges, min(stop, self.rows) - start)


class Keys:
    """The keys of these relations, and of the tables that feed them.

    Components of `together` stand in neighbouring fields: a table's key is made of them.
    """

    def __init__(
        self, relations: tuple[Relation, ...], tables: Collection[Component], together: Collection[Component]
    ) -> None:
        self._relations, self._together = relations, together
        self._components = sorted({p.component for r in relations for p in r.parts} | set(tables))
        self._panes: dict[Component, Panes] = {r.pane: r.panes for r in relations}
        self._addresses = {name for r in relations for name, kind in r.types.items() if kind.kind is Kind.INET}
        self._ranges: dict[Component, Range] = {}  # that the layout must hold
        self.met: dict[Component, Range] = {}
        self.layout: Layout | None = None

    def choose(self, records: Records, masks: Masks) -> Chosen:
        """Components of the records and their ranges. A component that is zero everywhere is left out."""
        found: dict[Component, Array] = {}
        for name in self._components:
            values = self._component(name, records, masks)
            if values is not None:
                found[name] = values
        ranges = {name: self._range(name, found, records) for name in self._components}
        return Chosen(masks, found, ranges, len(records))

    def _component(self, name: Component, records: Records, masks: Masks) -> Array | None:
        if name.tag is Tag.PANE:
            panes = self._panes[name]
            places = records.places(panes.axis)
            numbers = np.empty(len(places), np.int64)
            pane_number(places, panes.slide, panes.cut, numbers)
            return numbers
        if name.tag is Tag.SIEVE:
            mask = masks[name.of]
            return None if mask is None else (~mask).astype(np.int64)
        column = records.columns[name.of]
        if name.tag is Tag.NULL:
            return (column.valid == 0).astype(np.int64) if len(column.valid) else None
        if name.tag is Tag.INET6:
            return column.prefixes.get(name.length, column.inet6)
        return column.numbers

    def _range(self, name: Component, found: Mapping[Component, Array], records: Records) -> Range:
        if name in records.dictionaries:
            return 0, records.dictionaries[name].count
        if name.tag in (Tag.NULL, Tag.SIEVE):
            return 0, int(name in found)
        if name.tag is Tag.PANE:
            return int(found[name].min()), int(found[name].max())
        low, high = component_range(found[name], records.columns[name.of].valid)
        # Prefixes mask an address's own bits, so its field must start at zero.
        return (min(0, low), high) if name.of in self._addresses else (low, high)

    def fit(self, ranges: Mapping[Component, Range]) -> bool:
        """Whether the layout holds these ranges; they are remembered for the next one."""
        # Every value met counts, also one that the present layout happens to hold: the next one must hold it too.
        self.met = union(self.met, {name: span for name, span in ranges.items() if span[0] <= span[1]})
        self._ranges = union(self._ranges if self.layout else self._expected(), self.met)
        return self.layout is not None and self.layout.holds(self._ranges)

    def lay_out(self) -> Layout:
        """A layout that holds all ranges met. Fields that are wide enough stay as they are."""
        spans = {name: self._ranges.get(name, (0, 0)) for name in self._components}
        self.layout = lay_out(spans, self._together, self.layout.places if self.layout else None)
        return self.layout

    def pack(self, chosen: Chosen) -> Array:
        """The words of the chosen records, which the layout must hold."""
        assert self.layout is not None
        return pack_words(self.layout, chosen.components, chosen.rows)

    def remember(self) -> None:
        """Tell later tasks of this worker what to expect."""
        worker_cache.note_ranges(self._relations, self.met)

    def _expected(self) -> dict[Component, Range]:
        """Ranges as in the worker's last tasks. Panes go on from the first one that is met, as many as there were."""
        found: dict[Component, Range] = {}
        mine = set(self._components)
        for seen in worker_cache.ranges_of(self._relations):
            # Another plan of the same relations has other sieves.
            known = {name: span for name, span in seen.items() if name in mine}
            for name in [name for name in known if name.tag is Tag.PANE]:
                low, high = known.pop(name)
                if name in self.met:
                    known[name] = (self.met[name][0], self.met[name][0] + high - low)
            found = union(found, known)
        return found
