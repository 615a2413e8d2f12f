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
import os
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
        # The bounds may lie beyond 64 bits: from the beginning, to the end of time.
        low = np.count_nonzero(windows < first)
        high = np.count_nonzero(windows < beyond)
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
    """A segment opened for reading; what is read is verified page by page.

    Bytes are read, not mapped: mapped pages would count as the task's memory, and a file that shrinks under a
    mapping kills the process.
    """

    def __init__(self, path: Path, reference: dict[str, Any] | None = None) -> None:
        self.path = path
        try:
            self._size = path.stat().st_size
            self.index = self._read_index(reference)
        except OSError as error:
            raise StateError(f"segment {path} cannot be read: {error}", RESTORE) from error
        self.blocks = [Block(self, meta) for meta in self.index["blocks"]]

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
        """Values [start, stop) of a column as stored."""
        stop = meta["n"] if stop is None else stop
        dtype = np.dtype(meta["kind"])
        begin, end = (meta["at"] + row * dtype.itemsize for row in (start, stop))
        first = begin // PAGE * PAGE
        data = self._read(first, min(-(-end // PAGE) * PAGE, self._end))
        self._verify(first, data)
        return np.frombuffer(data, dtype, stop - start, begin - first)

    def _read(self, start: int, stop: int) -> bytes:
        try:
            with open(self.path, "rb", buffering=0) as file:
                data = os.pread(file.fileno(), stop - start, start)
        except OSError as error:
            raise StateError(f"segment {self.path} cannot be read: {error}", RESTORE) from error
        if len(data) != stop - start:
            raise StateError(f"segment {self.path} ends before byte {stop}", RESTORE)
        return data

    def _verify(self, first: int, data: bytes) -> None:
        view, number = memoryview(data), first // PAGE
        for at in range(0, len(data), PAGE):
            page = view[at : at + PAGE]
            if xxhash.xxh3_64_intdigest(page) != self.index["pages"][number + at // PAGE]:
                begin = first + at
                raise StateError(
                    f"segment {self.path} is damaged between bytes {begin} and {begin + len(page)}", RESTORE
                )

    def _read_index(self, reference: dict[str, Any] | None) -> dict[str, Any]:
        size = self._size
        if reference is not None and size != reference["bytes"]:
            raise StateError(f"segment {self.path} has {size} bytes, {reference['bytes']} were written", RESTORE)
        tail = self._read(size - TAIL.size, size) if size >= TAIL.size else b""
        length, checksum, magic = TAIL.unpack(tail) if tail else (0, 0, b"")
        self._end = size - TAIL.size - length
        wrong = magic != MAGIC or self._end < 0 or (reference is not None and checksum != reference["checksum"])
        data = b"" if wrong else self._read(self._end, size - TAIL.size)
        if wrong or xxhash.xxh3_64_intdigest(data) != checksum:
            raise StateError(f"segment {self.path} is damaged in its index, after byte {max(0, self._end)}", RESTORE)
        index: dict[str, Any] = json.loads(data)
        return index


RESTORE = "restore the checkpoint from a copy, or start anew with an empty one"
