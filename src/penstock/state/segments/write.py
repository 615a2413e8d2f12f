"""Write a segment: see `state.segments.read` for the format."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import xxhash

from penstock.aggregates.count import RECORDS
from penstock.errors import RunError, why
from penstock.faults import reach
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables.columns import PUT
from penstock.kernels.tables.order import order_groups, slot_of, slot_table
from penstock.kernels.tables.pack import ALL_VALID, component_range
from penstock.relations.component import Component
from penstock.state.protocol import SegmentRef
from penstock.state.segments.groups import Groups, canonical_hashes
from penstock.state.segments.index import FLOATS, BlockShape, IndexWriter, StoredColumn, state_columns
from penstock.state.segments.read import MAGIC, PAGE, TAIL

Array = np.ndarray
NEAR = 1 << 16  # pane numbers this close together are counted, not sorted
FEW = 256  # integers that stand in the index itself: to read a page for them would cost more
SPARSE = 4  # bytes that say where a slot begins, against one of each row


class SegmentWriter:
    """Writes blocks one after the other; `close` makes the file complete. A task that fails leaves what is there to
    `state.garbage`."""

    def __init__(self, path: Path, slots: int) -> None:
        self.path, self.slots, self._slot_table = path, slots, slot_table(slots)
        self._file = open(path, "xb")  # noqa: SIM115 - closed by close() or __exit__()
        self._size = 0
        self._page = xxhash.xxh3_64()
        self._pages: list[int] = []
        self._index = IndexWriter()
        self._panes: dict[str, tuple[int, int]] = {}
        self._write(MAGIC)

    def add(
        self, relation: str, groups: Groups, coarse: Sequence[Groups] = (), slot_key: Sequence[Component] | None = None
    ) -> None:
        """One relation's groups of the current run, put in order here; `coarse` are the same by 8, 64 … panes.

        The hash of the components of `slot_key` decides the slot of a group; None: of all its components.
        """
        reach("segment.write")
        for level, one in enumerate([groups, *coarse]):
            self._block(relation, one, level, slot_key)
        if len(groups.panes):
            low, high = int(groups.panes.min()), int(groups.panes.max())
            known = self._panes.get(relation, (low, high))
            self._panes[relation] = min(low, known[0]), max(high, known[1])

    def _block(self, relation: str, groups: Groups, level: int, slot_key: Sequence[Component] | None) -> None:
        (panes, index), n = distinct(groups.panes), len(groups.panes)
        by_code = {name: groups.dictionaries[name].hashes for name in groups.components if name in groups.dictionaries}
        names = groups.components if slot_key is None else slot_key
        hashes = canonical_hashes({name: groups.components[name] for name in names}, by_code, n)
        cuts = np.zeros(len(panes) * self.slots + 1, np.int64)
        cells, order = (np.empty(n, np.int32) for _ in range(2))
        order_groups(hashes, index, self._slot_table, cuts, cells, order)
        named = {RECORDS: groups.count, **{name.text: values for name, values in groups.components.items()}}
        for state, words in groups.states.items():
            named.update(zip(state_columns(state, len(words)), words, strict=True))
        # Where slots begin in each pane; where that would take more room, the slot of every row.
        slotted = len(cuts) * SPARSE > n
        where = slot_of(hashes[order], self._slot_table).astype(np.int64) if slotted else cuts
        short = (panes, cuts[:: self.slots], where)
        columns: list[StoredColumn | Array] = [one if len(one) <= FEW else self._integers(one) for one in short]
        columns += [self._ordered(values, order) for values in named.values()]
        states = tuple((state, len(words)) for state, words in groups.states.items())
        self._index.add(BlockShape(relation, tuple(named), states), n, level, slotted, columns)

    def end_run(self, dictionaries: Mapping[Component, Dictionary]) -> None:
        """Store the dictionaries that the run's codes refer to."""
        self._index.dictionaries.append(
            {name: (self._integers(d.offsets), self._raw(d.data, 1)) for name, d in dictionaries.items()}
        )

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        """Give the file back, complete or not; what could not be written was said when it happened."""
        with contextlib.suppress(OSError):
            self._file.close()

    def close(self) -> SegmentRef:
        """Write index and tail; returns what a reference says of the file: size, checksum, each query's panes."""
        reach("segment.close")
        if self._size % PAGE:
            self._pages.append(self._page.intdigest())
        data = self._index.encode(self.slots, self._pages)
        checksum = xxhash.xxh3_64_intdigest(data)
        try:
            self._file.write(data + TAIL.pack(len(data), checksum, MAGIC))
            self._file.close()
        except OSError as error:
            raise self._unwritten(error) from error
        size = self._size + len(data) + TAIL.size
        return SegmentRef(self.path.name, size, checksum, self._panes)

    def _unwritten(self, error: OSError) -> RunError:
        """Of a file that is open the system does not say which one it could not write."""
        return RunError(f"cannot write {self.path}: {why(error)}", "make room or mend the disk, then run again")

    def _ordered(self, values: Array, order: Array) -> StoredColumn:
        """Store values in this order: integers relative to the least of them in 0, 1, 2, 4 or 8 bytes, floats as they
        are."""
        if values.dtype == np.float64:
            return self._raw(values[order], FLOATS)
        values = np.ascontiguousarray(values, np.int64)
        low, high = component_range(values, ALL_VALID) if len(values) else (0, 0)
        size = width_of(low, high)
        stored = np.empty(len(values) if size else 0, f"u{max(1, size)}")
        if size:
            PUT[size](values, order, low, stored)
        return self._raw(stored, size)._replace(n=len(values), base=low, high=high)

    def _integers(self, values: Array) -> StoredColumn:
        """Store integers as they come; a few of them in the index."""
        if len(values) <= FEW:
            return self._index.inline(values)
        low, high = int(values.min()), int(values.max())
        size = width_of(low, high)
        stored = (values - low).astype(f"u{size}") if size else np.empty(0, np.uint8)
        return self._raw(stored, size)._replace(n=len(values), base=low, high=high)

    def _raw(self, values: Array, size: int) -> StoredColumn:
        if self._size % 8:
            self._write(bytes(-self._size % 8))
        at = self._size
        if len(values):
            self._write(np.ascontiguousarray(values).view(np.uint8).data)
        return StoredColumn(at, len(values), size)

    def _write(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        try:
            self._file.write(view)
        except OSError as error:
            raise self._unwritten(error) from error
        begun = self._size % PAGE
        self._size += len(view)
        if begun:
            rest = view[: PAGE - begun]
            self._page.update(rest)
            if begun + len(rest) < PAGE:
                return
            self._pages.append(self._page.intdigest())
            view = view[len(rest) :]
        whole = len(view) // PAGE * PAGE
        self._pages += [xxhash.xxh3_64_intdigest(view[at : at + PAGE]) for at in range(0, whole, PAGE)]
        self._page = xxhash.xxh3_64(view[whole:])


def width_of(low: int, high: int) -> int:
    """Bytes of integers from `low` to `high`, less the low."""
    return next(n for n in (0, 1, 2, 4, 8) if high - low < 1 << (8 * n))


def distinct(panes: Array) -> tuple[Array, Array]:
    """The different pane numbers, ascending, and for each group the position of its own among them (of one pane:
    nothing)."""
    if not len(panes):
        return panes, panes
    low, high = component_range(panes, ALL_VALID)
    if low == high:
        return np.array([low]), np.empty(0, np.int64)
    span = high - low + 1
    if span > NEAR:
        found, index = np.unique(panes, return_inverse=True)
        return found, index.astype(np.int64)
    shifted = panes - low
    there = np.bincount(shifted, minlength=span) > 0
    if there.all():
        return np.arange(low, high + 1), shifted
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[shifted]
