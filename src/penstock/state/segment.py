"""A segment: the partial aggregates of one task in one immutable, checksummed, columnar file.

    magic │ run 0: block (query) … dictionaries │ run 1: … │ index (JSON) │ tail: index size, its checksum, magic

A task that outgrows its memory writes its groups early and starts a new *run*; a run brings its own
dictionaries. A *block* holds one query's groups ordered by (window, hash slot): the window numbers with
their first rows, the slot of every row in one byte, and each column in the fewest bytes that hold its range. So a
reader finds a window's rows from the index, its slots by bisection, and reads only those bytes.

Checksums are per page of the file, so that any byte range can be verified when it is read, and a damaged
file is reported by name and offset.

This module reads segments (and imports no kernels: the driver reads indexes); `segment_write` writes them.
"""

from __future__ import annotations

import json
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from penstock.errors import StateError
from penstock.sharing.plan import State

Array = np.ndarray
MAGIC = b"PENSTK01"
PAGE = 1 << 18
TAIL = struct.Struct("<QQ8s")


def state_columns(state: State, words: int) -> list[str]:
    """Column names of a state's words."""
    return [f"{state.kind} {state.column} {word}" for word in range(words)]


@dataclass(frozen=True)
class Block:
    """One query's groups of one run, readable by row range."""

    segment: Segment
    meta: dict[str, Any]

    @property
    def rows(self) -> int:
        return int(self.meta["rows"])

    def windows(self) -> Array:
        return self.segment.integers(self.meta["windows"])

    def starts(self) -> Array:
        """First row of each window, and the number of rows."""
        return self.segment.integers(self.meta["starts"])

    def row_range(self, first: int, beyond: int) -> tuple[int, int]:
        """Rows of the windows numbered [first, beyond)."""
        windows, starts = self.windows(), self.starts()
        low, high = np.searchsorted(windows, [first, beyond])
        return int(starts[low]), int(starts[high])

    def slots(self, start: int, stop: int) -> Array:
        return self.segment.integers(self.meta["slots"], start, stop)

    def span(self, name: str) -> tuple[int, int]:
        """Least and greatest value of an integer column of the whole block."""
        column = self.meta["columns"][name]
        return column["base"], column["high"]

    def column(self, name: str, start: int, stop: int) -> Array:
        meta = self.meta["columns"][name]
        if meta["kind"] == "f8":
            return self.segment.stored(meta, start, stop)
        return self.segment.integers(meta, start, stop)

    def states(self) -> dict[State, list[str]]:
        """Column names of each state's words."""
        return {State(kind, column): state_columns(State(kind, column), n) for kind, column, n in self.meta["states"]}

    def dictionary(self, name: str) -> tuple[Array, Array]:
        """(offsets, bytes) of a dictionary of this block's run."""
        meta = self.segment.index["dictionaries"][self.meta["run"]][name]
        return self.segment.integers(meta["offsets"]), self.segment.stored(meta["data"])


class Segment:
    """A segment opened for reading; bytes are verified page by page, when first touched."""

    def __init__(self, path: Path, reference: dict[str, Any] | None = None) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise StateError(f"segment {path} cannot be read: {error}", RESTORE) from error
        self.index = self._read_index(reference)
        self.blocks = [Block(self, meta) for meta in self.index["blocks"]]
        self._verified = np.zeros(len(self.index["pages"]), bool)

    def of(self, query: str) -> list[Block]:
        return [block for block in self.blocks if block.meta["query"] == query]

    def integers(self, meta: dict[str, Any], start: int = 0, stop: int | None = None) -> Array:
        """Values [start, stop) of an integer column as int64."""
        stop = meta["n"] if stop is None else stop
        if meta["kind"] == "u0":
            return np.full(stop - start, meta["base"], np.int64)
        # Wraps around for ranges beyond 63 bits, as it did when stored.
        values = self.stored(meta, start, stop).astype(np.uint64).view(np.int64)
        values += np.int64(meta["base"])
        return values

    def stored(self, meta: dict[str, Any], start: int = 0, stop: int | None = None) -> Array:
        """The bytes as stored, without a copy."""
        stop = meta["n"] if stop is None else stop
        dtype = np.dtype(meta["kind"])
        begin = meta["at"] + start * dtype.itemsize
        self._verify(begin, begin + (stop - start) * dtype.itemsize)
        return np.frombuffer(self._map, dtype, stop - start, begin)

    def _verify(self, start: int, stop: int) -> None:
        for page in range(start // PAGE, -(-stop // PAGE)):
            if not self._verified[page]:
                data = memoryview(self._map)[page * PAGE : min((page + 1) * PAGE, self._end)]
                if xxhash.xxh3_64_intdigest(data) != self.index["pages"][page]:
                    raise StateError(
                        f"segment {self.path} is damaged between bytes {page * PAGE} and {page * PAGE + len(data)}",
                        RESTORE,
                    )
                self._verified[page] = True

    def _read_index(self, reference: dict[str, Any] | None) -> dict[str, Any]:
        size = len(self._map)
        if reference is not None and size != reference["bytes"]:
            raise StateError(f"segment {self.path} has {size} bytes, {reference['bytes']} were written", RESTORE)
        length, checksum, magic = TAIL.unpack(self._map[-TAIL.size :]) if size >= TAIL.size else (0, 0, b"")
        self._end = size - TAIL.size - length
        data = self._map[max(0, self._end) : size - TAIL.size]
        wrong = reference is not None and checksum != reference["checksum"]
        if magic != MAGIC or wrong or xxhash.xxh3_64_intdigest(data) != checksum:
            raise StateError(f"segment {self.path} is damaged in its index, after byte {max(0, self._end)}", RESTORE)
        index: dict[str, Any] = json.loads(data)
        return index


RESTORE = "restore the checkpoint from a copy, or start anew with an empty one"
