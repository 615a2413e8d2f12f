"""Times of records as arrival sees them, and the running greatest of them.

A time that is NULL or bad, that does not lie in the years 1 to 9999, or that is further ahead of the greatest before it
than MAX AHEAD allows, is malformed: it is no sign that time goes on. Tasks judge records by the same rules; windows may
make them a little stricter at either end of the calendar.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.sources.base import BAD, Position, Source, Split
from penstock.sources.decimals import DAY
from penstock.sources.live.contract import BLOCK

Array = np.ndarray
LEAST = -(1 << 63)  # before any usable time
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # of the years 1 to 9999
UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
READ_ROWS = 16 * BLOCK


def block_ends(source: Source, time: str, ahead: int | None) -> Array:
    """The running greatest time at the end of each block of a stream; reads its time column once."""
    greatest, blocks = LEAST, np.full(-(-source.rows() // BLOCK), LEAST, np.int64)
    for at, times in _read_times(source, Split(Position(0), source.rows()), time):
        if ahead is not None:
            greatest = _drop_far(times, greatest, ahead)
        first, last = at // BLOCK, (at + len(times) - 1) // BLOCK
        begin = np.maximum(np.arange(first, last + 1) * BLOCK - at, 0)
        own = blocks[first : last + 1]
        np.maximum(own, np.maximum.reduceat(times, begin), out=own)
    return np.maximum.accumulate(blocks)


def running(source: Source, split: Split, time: str, ahead: int | None, before: int) -> Array:
    """The running greatest time at each record of a split; `before` is that before its first."""
    times = np.concatenate([part for _, part in _read_times(source, split, time)])
    if ahead is not None:
        _drop_far(times, before, ahead)
    np.maximum(times[:1], before, out=times[:1])
    return np.maximum.accumulate(times)


def _read_times(source: Source, split: Split, time: str) -> Iterator[tuple[int, Array]]:
    """(position, times) piece by piece; the arrays may be written."""
    at = int(split.start)
    for batch in source.read(split, [time], READ_ROWS):
        if batch.num_rows:
            yield at, usable(batch, time)
        at += batch.num_rows


def usable(batch: pa.RecordBatch, name: str) -> Array:
    """Times in microseconds, the least integer where there is none."""
    array = batch.column(name)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    there = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else np.ones(len(array), bool)
    if BAD + name in batch.schema.names:
        there = there & ~batch.column(BAD + name).to_numpy(zero_copy_only=False)
    times = _microseconds(array)
    return np.where(there & (times >= FIRST) & (times <= LAST), times, LEAST)


def _microseconds(array: pa.Array) -> Array:
    """Times of any unit, and of dates at midnight. What is outside the calendar stays outside, without overflow."""
    if pa.types.is_date32(array.type):
        raw, scale = _numbers(array, np.int32).astype(np.int64), DAY
    else:
        raw, unit = _numbers(array, np.int64), "ms" if pa.types.is_date64(array.type) else array.type.unit
        if unit == "ns":
            return raw // 1000
        scale = UNITS[unit]
    return raw if scale == 1 else np.clip(raw, FIRST // scale - 1, LAST // scale + 1) * scale


def _numbers(array: pa.Array, kind: type) -> Array:
    """The values' buffer itself; what stands under a NULL is undefined."""
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def _drop_far(times: Array, greatest: int, ahead: int) -> int:
    """Take out times too far ahead of the greatest before them, which is `greatest` before the first; returns it."""
    from penstock.kernels.tables.pack import keep_near  # numba is slow to load, and few streams need it

    there = (times != LEAST).astype(np.uint8)
    after = int(keep_near(times, there, greatest, ahead))
    times[there == 0] = LEAST
    return after
