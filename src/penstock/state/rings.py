"""Rings: the newest records of each query, in one file that never grows.

    FOLDER/QUERY    record i of the query stands at slot i % CAPACITY

    record          index │ whole numbers │ checksum      8 bytes each, little-endian

A reader says how many records a query has had, and believes only those below that number whose index and checksum are
right: what a killed attempt left is not seen, and a replay writes the same records into the same slots. Like segments,
rings are not synced: the promise is about killed processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import xxhash

from penstock.errors import RunError, why
from penstock.faults import reach

CAPACITY = 1 << 16  # records of a query

Array = np.ndarray


@dataclass(frozen=True)
class Ring:
    """Records of these whole numbers, in a folder of the checkpoint; `point` is where tests disturb a write."""

    folder: str
    columns: tuple[str, ...]
    point: str

    @cached_property
    def record(self) -> np.dtype:
        return np.dtype([*((name, "<i8") for name in ("index", *self.columns)), ("checksum", "<u8")])

    def fresh(self, count: int) -> Array:
        """So many records of zeros."""
        return np.zeros(count, self.record)

    def write(self, checkpoint: Path, query: str, beyond: int, records: Array) -> None:
        """Keep the records before number `beyond`, in order; at most CAPACITY."""
        if not len(records):
            return
        first, kept = beyond - len(records), records.copy()
        kept["index"] = np.arange(first, beyond)
        kept["checksum"] = self._checksums(kept)
        reach(self.point)
        path, size = self.path(checkpoint, query), self.record.itemsize
        try:
            file = _opened(path)
            try:
                for begin, end in _runs(first, beyond):
                    _write(file, kept[begin - first : end - first].tobytes(), begin % CAPACITY * size)
            finally:
                os.close(file)
        except OSError as error:
            hint = "make room or mend the disk, then run again"
            raise RunError(f"cannot write {path}: {why(error)}", hint) from error

    def read(self, checkpoint: Path, query: str, beyond: int, most: int) -> Array:
        """The newest records before number `beyond`, oldest first; those damaged or overwritten are left out."""
        first, found = beyond - min(beyond, most, CAPACITY), [np.empty(0, self.record)]
        size = self.record.itemsize
        try:
            with open(self.path(checkpoint, query), "rb") as file:
                for begin, end in _runs(first, beyond):
                    file.seek(begin % CAPACITY * size)
                    data = file.read((end - begin) * size)
                    part = np.frombuffer(data[: len(data) // size * size], self.record)
                    right = part["index"] == np.arange(begin, begin + len(part))
                    found.append(part[right & (part["checksum"] == self._checksums(part))])
        except FileNotFoundError:  # there was nothing to keep, or no such ring yet
            pass
        return np.concatenate(found)

    def path(self, checkpoint: Path, query: str) -> Path:
        return checkpoint / self.folder / query  # a query's name can be a folder's

    def _checksums(self, records: Array) -> Array:
        data, size = records.tobytes(), self.record.itemsize
        return np.array(
            [xxhash.xxh3_64_intdigest(data[at : at + size - 8]) for at in range(0, len(data), size)], np.uint64
        )


def _opened(path: Path) -> int:
    """A file to write, with its folder. Every query has one in every batch: the folder is there but for the first."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o666)


def _write(file: int, data: bytes, at: int) -> None:
    while data:
        written = os.pwrite(file, data, at)
        data, at = data[written:], at + written


def _runs(first: int, beyond: int) -> Iterator[tuple[int, int]]:
    """The indices [first, beyond), cut where the ring comes round."""
    turn = (first // CAPACITY + 1) * CAPACITY
    yield first, min(turn, beyond)
    if turn < beyond:
        yield turn, beyond
