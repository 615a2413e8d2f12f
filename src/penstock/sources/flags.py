"""Columns and flags to one Arrow batch, as `sources.base` describes it: what sources of text and of packets share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.sources.base import BAD

Array = np.ndarray[Any, Any]


def flagged(
    columns: Sequence[tuple[pa.Field, pa.Array, Array]], rows: int, lost: Array | None, texts: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    """A batch of (field, values, marks of bad values); all values of `lost` records are bad. `texts` say why."""
    flags = {
        BAD + field.name: pa.array(bad if lost is None else bad | lost)
        for field, _, bad in columns
        if lost is not None or bad.any()
    }
    flags.update(texts)
    if not columns and not flags:
        return without_columns(rows)
    schema = [*(field for field, _, _ in columns), *(pa.field(name, array.type) for name, array in flags.items())]
    return pa.record_batch([*(values for _, values, _ in columns), *flags.values()], schema=pa.schema(schema))


def without_columns(rows: int) -> pa.RecordBatch:
    """Rows without columns still count."""
    return pa.record_batch([pa.nulls(rows)], ["none"]).select([])


def numbered_texts(texts: Sequence[str | None], numbers: Array) -> pa.Array:
    """Each number's text; 0 is NULL."""
    return pa.array(texts[1:], pa.string()).take(pa.array(numbers.astype(np.int16) - 1, mask=numbers == 0))
