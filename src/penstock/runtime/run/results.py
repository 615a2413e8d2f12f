"""Results as their reader wants them: windows in order, and values that survive the way to pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pandas

WINDOW = ("window_start", "window_end")


def by_window(table: pa.Table) -> pa.Table:
    """Rows by window; those of one window stay as they were written."""
    if tuple(table.column_names[-2:]) != WINDOW:
        return table
    places = pa.table(table.columns[-2:], names=list(WINDOW))
    order = pc.sort_indices(places, sort_keys=[(name, "ascending") for name in WINDOW])
    return table.take(order).combine_chunks()


def as_pandas(table: pa.Table) -> pandas.DataFrame:
    """Integers and booleans beside a NULL would become floats and objects: they come as what knows NULL instead."""
    import pandas

    known = {
        pa.int8(): pandas.Int8Dtype(),
        pa.int16(): pandas.Int16Dtype(),
        pa.int32(): pandas.Int32Dtype(),
        pa.int64(): pandas.Int64Dtype(),
        pa.bool_(): pandas.BooleanDtype(),
    }
    columns = {
        name: column.to_pandas(types_mapper=known.get if column.null_count else None)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pandas.DataFrame(columns)
