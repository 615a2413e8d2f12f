"""Walks a file of text record by record, in blocks.

    index_text   one pass over the file: counts the records, and remembers where every 4096th begins
    read_text    seeks to the nearest of those, skips, and turns the next records into Arrow batches

A `RecordFormat` (`sources.text.csv`, `sources.text.json`) knows what a record is; nothing here does. Memory is one
block, or the longest record that is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.errors import RunError
from penstock.kernels.text.index import AT
from penstock.logical.query import Field
from penstock.sources.files import unreadable
from penstock.sources.text.columns import Rules, Spans, batch

Array = np.ndarray[Any, Any]
BLOCK = 1 << 22
SOME = 1 << 16  # records looked at in one go
STRIDE, POINTS = 4096, 1024  # every 4096th record is in the index; every 8192th where that would be too many, …


class RecordFormat(Protocol):
    """What a record is, and how its fields are found."""

    @property
    def longest(self) -> int: ...

    @property
    def rules(self) -> Rules: ...

    def starts(self, piece: TextPiece, starts: Array) -> int:
        """Find the next records' places; returns how many, and moves `piece.state`."""
        ...

    def spans(self, piece: TextPiece, spans: Spans, rows: int, plan: Any) -> int:
        """Find the spans of the next records, at most `rows`; returns how many, and moves `piece.state`."""
        ...

    def plan(self, columns: tuple[str, ...] | None, asked: list[Field]) -> Any:
        """What `spans` needs to know for a file with these columns."""
        ...


class TextPiece:
    """A piece of text, of which `data[begin:end]` is not yet used; `final` says that nothing comes after it."""

    def __init__(self, data: Array, end: int, final: bool) -> None:
        self.data, self.begin, self.end, self.final = data, 0, end, final
        self.ascii = False
        self.state = np.zeros(2, np.int64)

    def use(self) -> None:
        """What the kernel passed over is done."""
        self.begin = int(self.state[AT])


class TextBlock(TextPiece):
    """A window on a file: `data[0]` is byte `base` of it."""

    def __init__(self, path: str, offset: int, longest: int) -> None:
        super().__init__(np.empty(BLOCK + longest + 2, np.uint8), 0, False)
        try:
            self._file = FileIO(path)
            self._file.seek(offset)
        except OSError as error:
            raise unreadable(path, error) from error
        self._path, self.base = path, offset

    def __enter__(self) -> TextBlock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def refill(self, each: Callable[[memoryview], None] | None = None) -> bool:
        """Read on, keeping what is left; False at the end of the file. `each` sees every byte once."""
        if self.final:
            return False
        left = self.end - self.begin
        self.data[:left] = self.data[self.begin : self.end]  # they may overlap: numpy copies as if they did not
        self.base += self.begin
        try:
            count = self._file.readinto(self.data[left : left + BLOCK].data)
        except OSError as error:
            raise unreadable(self._path, error) from error
        self.begin, self.end, self.final = 0, left + count, count == 0
        self.ascii = not (self.data[: self.end] & 0x80).any()
        if each is not None and count:
            each(self.data[left : self.end].data)
        return True


@dataclass(frozen=True)
class TextIndex:
    """Number of records, and the places of records 0, stride, 2 · stride, …"""

    rows: int
    stride: int
    places: tuple[int, ...]


def index_text(path: str, offset: int, skip: int, form: RecordFormat, each: Callable[[memoryview], None]) -> TextIndex:
    """Walk the whole text after `offset`; the first `skip` records (a header) do not count."""
    rows, places = -skip, [np.empty(0, np.int64)]
    starts = np.empty(SOME, np.int64)
    with TextBlock(path, offset, form.longest) as block:
        while block.refill(each):
            while count := form.starts(block, starts):
                # Record number rows + i is wanted if it is a multiple of STRIDE and not before 0.
                first = -rows % STRIDE if rows >= 0 else -rows
                places.append(starts[first:count:STRIDE] + block.base)
                rows += count
                block.use()
            block.use()
    found, stride = np.concatenate(places), STRIDE
    while len(found) > POINTS:
        found, stride = found[::2], stride * 2
    return TextIndex(max(rows, 0), stride, tuple(found.tolist()))


def place_of(path: str, index: TextIndex, row: int, form: RecordFormat) -> int:
    """Byte at which record `row` begins."""
    starts = np.empty(index.stride, np.int64)
    with TextBlock(path, index.places[row // index.stride], form.longest) as block:
        left = row % index.stride
        while True:
            count = form.starts(block, starts)
            if left < count:
                return block.base + int(starts[left])
            left -= count
            block.use()
            if not count and not block.refill():
                raise _shorter(path)


def read_text(
    path: str,
    index: TextIndex,
    start: int,
    stop: int,
    form: RecordFormat,
    plan: Any,
    asked: list[Field],
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Records [start, stop) of the file as Arrow batches."""
    with TextBlock(path, index.places[start // index.stride], form.longest) as block:
        _skip(path, block, start % index.stride, form)
        left = stop - start
        spans = Spans(len(asked), min(batch_rows, left, SOME))
        while left:
            count = form.spans(block, spans, min(left, len(spans.starts)), plan)
            if count:
                yield batch(asked, block.data, spans, count, form.rules)
                left -= count
            block.use()
            if not count and not block.refill():
                raise _shorter(path)


def _skip(path: str, block: TextBlock, count: int, form: RecordFormat) -> None:
    starts = np.empty(count, np.int64)
    while count:
        found = form.starts(block, starts[:count])
        count -= found
        block.use()
        if not found and not block.refill():
            raise _shorter(path)


def _shorter(path: str) -> RunError:
    return RunError(f"'{path}' has fewer records than when it was first read", "start again with a new checkpoint")
