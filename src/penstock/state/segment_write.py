"""Write a segment: see `state.segment` for the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from penstock.faults import reach
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.order import order_groups, slot_of
from penstock.state.groups import Groups, canonical_hashes
from penstock.state.segment import MAGIC, PAGE, TAIL, state_columns

Array = np.ndarray
NEAR = 1 << 16  # window numbers this close together are counted, not sorted


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

    def add(self, query: str, groups: Groups) -> list[int]:
        """One query's groups of the current run, put in order here. Returns their windows."""
        reach("segment.write")
        windows, index = distinct(groups.window)
        hashes = canonical_hashes(groups.components, groups.dictionaries, len(groups))
        cuts = np.zeros(len(windows) * self.slots + 1, np.int64)
        order = np.empty(len(groups), np.int64)
        order_groups(hashes, index, len(windows), self.slots, cuts, order)
        columns = {"count": groups.count, **groups.components}
        for state, words in groups.states.items():
            columns.update(zip(state_columns(state, len(words)), words, strict=True))
        self._blocks.append(
            {
                "query": query,
                "run": len(self._dictionaries),
                "rows": len(groups),
                "windows": self._column(windows),
                "starts": self._column(cuts[:: self.slots]),
                "slots": self._column(slot_of(hashes[order], self.slots).astype(np.int64)),
                "columns": {name: self._column(values[order]) for name, values in columns.items()},
                "states": [[s.kind, s.column, len(words)] for s, words in groups.states.items()],
            }
        )
        numbers: list[int] = windows.tolist()
        return numbers

    def end_run(self, dictionaries: dict[str, Dictionary]) -> None:
        """Store the dictionaries that the run's codes refer to."""
        self._dictionaries.append(
            {
                name: {"offsets": self._column(d.offsets), "data": self._raw(d.data, "u1")}
                for name, d in dictionaries.items()
            }
        )

    def close(self) -> dict[str, Any]:
        """Write index and tail; returns what a reference says of the file."""
        reach("segment.close")
        if self._size % PAGE:
            self._pages.append(self._page.intdigest())
        index = {"slots": self.slots, "blocks": self._blocks, "dictionaries": self._dictionaries, "pages": self._pages}
        data = json.dumps(index, separators=(",", ":")).encode()
        checksum = xxhash.xxh3_64_intdigest(data)
        self._file.write(data + TAIL.pack(len(data), checksum, MAGIC))
        self._file.close()
        return {"path": self.path.name, "bytes": self._size + len(data) + TAIL.size, "checksum": checksum}

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
        self._file.write(view)
        while len(view):
            part = view[: PAGE - self._size % PAGE]
            self._page.update(part)
            self._size += len(part)
            view = view[len(part) :]
            if self._size % PAGE == 0:
                self._pages.append(self._page.intdigest())
                self._page = xxhash.xxh3_64()


def distinct(windows: Array) -> tuple[Array, Array]:
    """The different window numbers, ascending, and for each group the position of its own among them."""
    if not len(windows):
        return windows, windows
    low = int(windows.min())
    span = int(windows.max()) - low + 1
    if span > NEAR:
        found, index = np.unique(windows, return_inverse=True)
        return found, index.astype(np.int64)
    shifted = windows - low
    there = np.bincount(shifted, minlength=span) > 0
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[shifted]
