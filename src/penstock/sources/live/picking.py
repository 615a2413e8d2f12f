"""Reading picks: the records of a range that its step chooses, and as little as possible of the others.

read_picks ──► SkippingSource.read_picks          takes its picks out of what it need not decode
          └──► any other: read, then take         decodes all
gathered: few records a batch ──► batches of a size that is worth a task's while
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Protocol, TypeGuard

import numpy as np
import pyarrow as pa

from penstock.sources.base import START, Source, Split
from penstock.sources.counted import CountedFiles, File
from penstock.sources.flags import without_columns
from penstock.triage.picks import Picks

Array = np.ndarray


class SkippingSource(Source, Protocol):
    """A source that reads picks without decoding all that stands between them."""

    def read_picks(
        self, split: Split, columns: Sequence[str], batch_rows: int, picks: Picks
    ) -> Iterator[pa.RecordBatch]:
        """Like `read`, of the picks alone. The split begins and ends at multiples of the step."""
        ...


def skipping(source: Source) -> bool:
    """Whether a source skips; of one that wraps another, whether that does."""
    return _skips(source.narrowed(Split(START, START)))


def _skips(source: Source) -> TypeGuard[SkippingSource]:
    return hasattr(source, "read_picks")


def read_picks(
    source: Source, split: Split, columns: Sequence[str], batch_rows: int, picks: Picks
) -> Iterator[pa.RecordBatch]:
    """The picks of a split, in order. Any source has them; one that cannot skip decodes all."""
    narrow = source.narrowed(split)
    if _skips(narrow):
        return narrow.read_picks(split, columns, batch_rows, picks)
    return gathered(_taken(narrow.read, split, columns, batch_rows, picks), batch_rows)


def _taken(
    read: Callable[[Split, Sequence[str], int], Iterator[pa.RecordBatch]],
    split: Split,
    columns: Sequence[str],
    batch_rows: int,
    picks: Picks,
) -> Iterator[pa.RecordBatch]:
    at, rows = int(split.start), picks.rows(split.start, split.stop)
    for batch in read(split, columns, batch_rows):
        wanted = between(rows, at, at + batch.num_rows)
        if len(wanted):
            yield taken(batch, wanted)
        at += batch.num_rows


def between(rows: Array, start: int, stop: int) -> Array:
    """Those of ascending rows that lie in [start, stop), counted from `start`."""
    first, beyond = np.searchsorted(rows, (start, stop))
    chosen: Array = rows[first:beyond] - start
    return chosen


def taken(batch: pa.RecordBatch, rows: Array) -> pa.RecordBatch:
    """These records of a batch."""
    return batch.take(pa.array(rows)) if batch.num_columns else without_columns(len(rows))


def gathered(batches: Iterator[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The same records in batches of up to `batch_rows`: what a task does for a batch would cost more than its few
    picks. Neighbours with other columns (flags come and go) stay apart."""
    held, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        if held and (rows + batch.num_rows > batch_rows or batch.schema != held[0].schema):
            yield _one(held, rows)
            held, rows = [], 0
        held.append(batch)
        rows += batch.num_rows
    if held:
        yield _one(held, rows)


def _one(batches: list[pa.RecordBatch], rows: int) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    if not len(schema):
        return without_columns(rows)
    return pa.record_batch(
        [pa.concat_arrays([batch.column(number) for batch in batches]) for number in range(len(schema))], schema=schema
    )


class SkippingFiles(CountedFiles[File]):
    """Files whose records are counted, and that reach some of them without decoding the others; where the step is less
    than `least_step`, to decode all costs less."""

    least_step: ClassVar[int] = 2

    @abstractmethod
    def _read_rows(self, file: File, rows: Array, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """These records of a file, ascending; batches may be small."""

    def read_picks(
        self, split: Split, columns: Sequence[str], batch_rows: int, picks: Picks
    ) -> Iterator[pa.RecordBatch]:
        if picks.step < self.least_step:
            return gathered(_taken(self.read, split, columns, batch_rows, picks), batch_rows)
        rows = picks.rows(split.start, split.stop)
        found = (
            batch
            for file, base, start, stop in self._parts(split)
            for batch in self._read_rows(file, between(rows, base + start, base + stop) + start, columns, batch_rows)
        )
        return gathered(found, batch_rows)
