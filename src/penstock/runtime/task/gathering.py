"""Small batches of a source as larger ones: a chunk costs a task the same few hundred calls, however short it is."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def gathered(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The same records in the same order, neighbouring batches together as long as they have at most so many."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if held and (rows + batch.num_rows > most or not _alike(held[0].schema, batch.schema)):
            yield _joined(held)
            held, rows = [], 0
        held.append(batch)
        rows += batch.num_rows
    if held:
        yield _joined(held)


def _alike(one: pa.Schema, other: pa.Schema) -> bool:
    """Columns with dictionaries of their own stay as they are: joining these takes longer than it saves."""
    return bool(one.equals(other)) and not any(pa.types.is_dictionary(field.type) for field in one)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
