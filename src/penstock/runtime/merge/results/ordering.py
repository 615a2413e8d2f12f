"""ORDER BY and LIMIT, per window: the first rows in the engine's order, ties by the keys.

Every column of the order becomes an int64 rank, NULL below all, so that one `lexsort` does it whatever the types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.tables.fold import order_bits
from penstock.logical.query import Query
from penstock.runtime.expressions.evaluate import Addresses, Operand
from penstock.runtime.expressions.operands import array_of

Array = np.ndarray


@dataclass(frozen=True)
class Ranked:
    """Result rows with what they are ordered by: the window, then (operand, descending) of ORDER BY and keys. `runs`:
    where each run of equal windows begins, if that is known."""

    table: pa.Table
    windows: Array
    columns: tuple[tuple[Operand, bool], ...] = ()
    runs: Array | None = None

    def take(self, rows: Array) -> Ranked:
        columns = tuple((_taken(operand, rows), descending) for operand, descending in self.columns)
        return Ranked(self.table.take(array_of(rows)), self.windows[rows], columns)

    def joined(self, others: Sequence[Ranked]) -> Ranked:
        """The rows of several passes together."""
        everything = [self, *others]
        columns = tuple(
            (_concatenated([one.columns[i][0] for one in everything]), descending)
            for i, (_, descending) in enumerate(self.columns)
        )
        tables = pa.concat_tables([one.table.unify_dictionaries() for one in everything])
        return Ranked(tables, np.concatenate([one.windows for one in everything]), columns)


def first_rows(query: Query, ranked: Ranked) -> Ranked:
    """Rows in the query's order; with a LIMIT the first ones of each window."""
    if not query.order and query.limit is None:
        return ranked
    keys: list[Array] = []
    for operand, descending in ranked.columns:
        keys += _sort_keys(operand, descending)
    order = np.lexsort([*reversed(keys), ranked.windows])
    if query.limit is not None:
        windows = ranked.windows[order]
        begins = np.flatnonzero(np.r_[True, windows[1:] != windows[:-1]]) if len(windows) else np.empty(0, np.int64)
        counts = np.diff(np.r_[begins, len(windows)])
        rank = np.arange(len(windows)) - np.repeat(begins, counts)
        order = order[rank < query.limit]
    return ranked.take(order)


def fewer_rows(query: Query, ranked: Ranked) -> Ranked:
    """Rows of a pass without those that a LIMIT leaves out for sure; they are put in order with those of the others."""
    return ranked if query.limit is None or len(ranked.windows) <= query.limit else first_rows(query, ranked)


def _sort_keys(operand: Operand, descending: bool) -> list[Array]:
    """Most significant first: whether there is a value at all, then the value."""
    values = [_number(part) for part in _parts(operand)]
    keys = values
    if operand.valid is not None:
        valid = operand.valid.astype(np.int64)
        keys = [valid, *(np.where(operand.valid, value, 0) for value in values)]
    # The complement of an integer turns its order round and cannot overflow.
    return [~key for key in keys] if descending else keys


def _parts(operand: Operand) -> list[Array | pa.Array]:
    values = operand.values
    return [values.version, values.high, values.low] if isinstance(values, Addresses) else [values]


def _number(values: Array | pa.Array) -> Array:
    """Values as int64 in the same order."""
    if isinstance(values, pa.Array):
        text = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        ranks: Array = pc.rank(text.cast(pa.large_binary()), tiebreaker="dense").to_numpy().astype(np.int64)
        return ranks
    if values.dtype.kind == "f":
        bits = np.empty(len(values), np.int64)
        order_bits(np.ascontiguousarray(values, np.float64), bits)
        return bits
    if values.dtype == np.uint64:
        return (values ^ np.uint64(1 << 63)).view(np.int64)
    return values.astype(np.int64)


def _taken(operand: Operand, rows: Array) -> Operand:
    valid = None if operand.valid is None else operand.valid[rows]
    values = operand.values
    if isinstance(values, Addresses):
        return Operand(Addresses(values.version[rows], values.high[rows], values.low[rows]), valid)
    return Operand(values.take(array_of(rows)) if isinstance(values, pa.Array) else values[rows], valid)


def _concatenated(operands: list[Operand]) -> Operand:
    valid = None
    if any(operand.valid is not None for operand in operands):
        lengths = [len(_parts(operand)[0]) for operand in operands]
        valid = np.concatenate(
            [np.ones(n, bool) if o.valid is None else o.valid for o, n in zip(operands, lengths, strict=True)]
        )
    first = operands[0].values
    if isinstance(first, Addresses):
        return Operand(Addresses(*(np.concatenate(parts) for parts in zip(*map(_parts, operands), strict=True))), valid)
    if isinstance(first, pa.Array):
        plain = [o.values.dictionary_decode() if pa.types.is_dictionary(o.values.type) else o.values for o in operands]
        return Operand(pa.concat_arrays(plain), valid)
    return Operand(np.concatenate([operand.values for operand in operands]), valid)
