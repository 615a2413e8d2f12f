"""Reading picks: the records of a range that its step chooses, and as little as possible of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeGuard

import numpy as np
import pyarrow as pa

from penstock.sources.base import Source, Split
from penstock.triage.picks import Picks


class SkippingSource(Source, Protocol):
    """A source that reads picks without decoding all that stands between them."""

    def read_picks(
        self, split: Split, columns: Sequence[str], batch_rows: int, picks: Picks
    ) -> Iterator[pa.RecordBatch]:
        """Like `read`, of the picks alone. The split begins and ends at multiples of the step."""
        ...


def skipping(source: Source) -> TypeGuard[SkippingSource]:
    return hasattr(source, "read_picks")


def read_picks(
    source: Source, split: Split, columns: Sequence[str], batch_rows: int, picks: Picks
) -> Iterator[pa.RecordBatch]:
    """The picks of a split, in order. Any source has them; one that cannot skip decodes all."""
    if skipping(source):
        yield from source.read_picks(split, columns, batch_rows, picks)
        return
    at, rows = split.start, picks.rows(split.start, split.stop)
    for batch in source.read(split, columns, batch_rows):
        first, beyond = np.searchsorted(rows, (at, at + batch.num_rows))
        if beyond > first:
            yield batch.take(pa.array(rows[first:beyond] - at))
        at += batch.num_rows
