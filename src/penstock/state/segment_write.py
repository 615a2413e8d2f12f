"""Write a segment: see `state.segment` for the format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from penstock.errors import RunError, why
from penstock.faults import reach
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.order import order_groups, slot_of
from penstock.state.groups import Groups, canonical_hashes
from penstock.state.segment import MAGIC, PAGE, TAIL, state_columns

Array = np.ndarray
NEAR = 1 << 16  # pane numbers this close together are counted, not sorted
SPARSE = 4  # bytes that say where a slot begins, against one of each row


class SegmentWriter:
    """Writes blocks one after the other; `close` makes the file complete."""

    def __init__(self, path: Path, slots: int) -> None:
        self.path, self.slots = path, slots
        self._file = open(path, "xb")  # noqa: SIM115 - closed by close()
        self._size = 0
        self._page = xxhash.xxh3_64()
        self._pages: list[int] = []
        self._blocks: list[dict[str, Any]] = []
        self._dictionaries: list[dict[str, Any]] = []
        self._write(MAGIC)

    def add(self, query: str, groups: Groups, coarse: Sequence[Groups] = ()) -> None:
        """One query's groups of the current run, put in order here; `coarse` are the same by 8, 64 … panes."""
        reach("segment.write")
        block = self._block(query, groups)
        block["coarse"] = [self._block(query, level) for level in coarse]
        self._blocks.append(block)

    def _block(self, query: str, groups: Groups) -> dict[str, Any]:
        panes, index = distinct(groups.panes)
        by_code = {name: groups.dictionaries[name].hashes for name in groups.components if name in groups.dictionaries}
        hashes = canonical_hashes(groups.components, by_code, len(groups))
        cuts = np.zeros(len(panes) * self.slots + 1, np.int64)
        order = np.empty(len(groups), np.int64)
        order_groups(hashes, index, len(panes), self.slots, cuts, order)
        columns = {"count": groups.count, **groups.components}
        for state, words in groups.states.items():
            columns.update(zip(state_columns(state, len(words)), words, strict=True))
        return {
            "query": query,
            "run": len(self._dictionaries),
            "rows": len(groups),
            "panes": self._column(panes),
            "starts": self._column(cuts[:: self.slots]),
            **self._where(cuts, hashes, order),
            "columns": {name: self._column(values[order]) for name, values in columns.items()},
            "states": [[s.kind, s.column, len(words)] for s, words in groups.states.items()],
        }

    def _where(self, cuts: Array, hashes: Array, order: Array) -> dict[str, Any]:
        """Where slots begin in each pane; where that would take more room, the slot of every row."""
        if len(cuts) * SPARSE <= len(order):
            return {"cuts": self._column(cuts)}
        return {"slots": self._column(slot_of(hashes[order], self.slots).astype(np.int64))}

    def end_run(self, dictionaries: dict[str, Dictionary]) -> None:
        """Store the dictionaries that the run's codes refer to."""
        self._dictionaries.append(
            {
                name: {"offsets": self._column(d.offsets), "data": self._raw(d.data, "u1")}
                for name, d in dictionaries.items()
            }
        )

    def close(self) -> dict[str, Any]:
        """Write index and tail; returns what a reference says of the file: size, checksum, each query's panes."""
        reach("segment.close")
        if self._size % PAGE:
            self._pages.append(self._page.intdigest())
        index = {"slots": self.slots, "blocks": self._blocks, "dictionaries": self._dictionaries, "pages": self._pages}
        data = json.dumps(index, separators=(",", ":")).encode()
        checksum = xxhash.xxh3_64_intdigest(data)
        with self._disk():
            self._file.write(data + TAIL.pack(len(data), checksum, MAGIC))
            self._file.close()
        panes: dict[str, list[int]] = {}
        for block in self._blocks:
            low, high = panes.get(block["query"], [block["panes"]["base"], block["panes"]["high"]])
            panes[block["query"]] = [min(low, block["panes"]["base"]), max(high, block["panes"]["high"])]
        size = self._size + len(data) + TAIL.size
        return {"path": self.path.name, "bytes": size, "checksum": checksum, "panes": panes}

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Of a file that is open the system does not say which one it could not write."""
        try:
            yield
        except OSError as error:
            raise RunError(
                f"cannot write {self.path}: {why(error)}", "make room or mend the disk, then run again"
            ) from error

    def _column(self, values: Array) -> dict[str, Any]:
        """Store integers relative to the least of them in 0, 1, 2, 4 or 8 bytes; floats as they are."""
        if values.dtype == np.float64:
            return self._raw(values, "f8")
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        size = next(n for n in (0, 1, 2, 4, 8) if high - low < 1 << (8 * n))
        stored = (values - low).astype(f"u{size}") if size else np.empty(0, np.uint8)
        return self._raw(stored, f"u{size}") | {"n": len(values), "base": low, "high": high}

    def _raw(self, values: Array, kind: str) -> dict[str, Any]:
        self._write(bytes(-self._size % 8))
        at = self._size
        self._write(np.ascontiguousarray(values).view(np.uint8).data if len(values) else b"")
        return {"at": at, "n": len(values), "kind": kind}

    def _write(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        with self._disk():
            self._file.write(view)
        while len(view):
            part = view[: PAGE - self._size % PAGE]
            self._page.update(part)
            self._size += len(part)
            view = view[len(part) :]
            if self._size % PAGE == 0:
                self._pages.append(self._page.intdigest())
                self._page = xxhash.xxh3_64()


def distinct(panes: Array) -> tuple[Array, Array]:
    """The different pane numbers, ascending, and for each group the position of its own among them."""
    if not len(panes):
        return panes, panes
    low = int(panes.min())
    span = int(panes.max()) - low + 1
    if span > NEAR:
        found, index = np.unique(panes, return_inverse=True)
        return found, index.astype(np.int64)
    shifted = panes - low
    there = np.bincount(shifted, minlength=span) > 0
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[shifted]
