"""A random stream: its time column, its other columns, how it is declared and stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.logical.types import TIMESTAMP, Kind
from penstock.sources.base import TYPE_KEY
from penstock.testing.apps.random_values import MAKERS, NULL_SHARES, RandomColumn, in_unit, wide_integers
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.columns import read_column

SECOND = 1_000_000
ROWS = ((0, 3), (4, 60), (60, 600), (600, 600), (600, 4_000), (600, 4_000), (2_000, 6_000), (10_000, 20_000))
SPANS = (1, 30, 600, 7_200, 90_000, 400_000)  # seconds between first and last record
STARTS = (-4 * 10**12, -90 * SECOND, 0, 951_782_400 * SECOND, 1_794_000_000 * SECOND)
DELAYS = (0, 0, 0, 1, 20, 100, 1_000, 5_000)  # thousandths of the span, of which the last is longer than the stream
AHEADS = ("1 second", "1 minute", "2 hours")
BLOCK = 6
ADDRESS_KEY = b"penstock.testing.address"  # metadata of integers that stand for addresses


@dataclass(frozen=True)
class RandomStream:
    """`columns` leaves out the time column; `clauses` follow the source in CREATE STREAM; `reach` is from the least
    to the greatest time in microseconds."""

    columns: tuple[RandomColumn, ...]
    time: pa.Array
    reach: int
    clauses: str
    delay: str | None
    declared: bool
    schema: pa.Schema
    table: pa.Table

    def schema_text(self) -> str:
        """The column list of CREATE STREAM; empty where the file's own schema is used."""
        if not self.declared:
            return ""
        return "(" + ", ".join(["ts TIMESTAMP", *(f"{c.name} {c.declared}" for c in self.columns)]) + ")"


def random_stream(dice: Dice) -> RandomStream:
    rows = dice.between(*dice.pick(ROWS))
    span = dice.pick(SPANS)
    # Wide sums need whole blocks in one group: nothing may be late or cut off inside a block.
    wide = dice.chance(0.15)
    delay = None if wide or dice.chance(0.15) else _delay(dice, span)
    declared = dice.chance(0.75)
    base = rows // BLOCK if wide else rows
    time = _times(dice, base, span, ahead=delay is not None)
    makers = [dice.pick(MAKERS) for _ in range(dice.between(1, 9))]
    columns = [make(dice, f"c{i}", base) for i, make in enumerate(makers)]
    if wide:
        time, columns = _in_blocks(time), [replace(c, array=_in_blocks(c.array)) for c in columns]
        columns.append(wide_integers(dice, "wide", base * BLOCK))
    clauses = _clauses(dice, delay)
    schema = pa.schema([pa.field("ts", time.type), *(_field(column, declared) for column in columns)])
    table = pa.Table.from_arrays([time, *(column.array for column in columns)], schema=schema)
    if declared and dice.chance(0.5):
        table = table.select([table.schema.names[i] for i in dice.rng.permutation(table.num_columns)])
    return RandomStream(tuple(columns), time, _reach(time), clauses, delay, declared, table.schema, table)


def _delay(dice: Dice, span: int) -> str:
    """Mostly short against the span, so that something can be late."""
    milliseconds = span * dice.pick(DELAYS)
    return dice.pick((f"{milliseconds} ms", f"{milliseconds / 1_000:.10g} seconds"))


def _times(dice: Dice, rows: int, span: int, ahead: bool) -> pa.Array:
    """In order but for some disorder; some come long after their time, some long before it."""
    start = dice.pick(STARTS)
    values = start + np.sort(dice.rng.integers(0, span * SECOND, rows, endpoint=True))
    disorder = dice.pick(
        (0, 1, span * SECOND // 100 + 1, span * SECOND // 20 + 1, span * SECOND // 5, span * SECOND * 2)
    )
    values = values + dice.rng.integers(-disorder, disorder, rows, endpoint=True)
    if dice.chance(0.1):
        values = dice.rng.permutation(values)
    if dice.chance(0.5):  # stragglers
        back = dice.rng.integers(0, span * SECOND, rows, endpoint=True)
        values = values - np.where(dice.rng.random(rows) < dice.pick((0.02, 0.2)), back, 0)
    if rows > 4 and dice.chance(0.2):  # a stretch that comes at the end
        first = dice.between(0, rows - 2)
        beyond = min(rows, first + max(1, rows // 5))
        values = np.concatenate([values[:first], values[beyond:], values[first:beyond]])
    if ahead and dice.chance(0.3):
        values = values + np.where(dice.rng.random(rows) < 0.01, 5 * span * SECOND, 0)
    return in_unit(dice, values, dice.pick(NULL_SHARES) if dice.chance(0.15) else 0.0)


def _reach(time: pa.Array) -> int:
    known = read_column(pa.chunked_array([time]), TIMESTAMP).array.drop_null().to_numpy(zero_copy_only=False)
    return int(known.max() - known.min()) if len(known) else 0


def _clauses(dice: Dice, delay: str | None) -> str:
    if delay is None:
        return ""
    ahead = f" MAX AHEAD '{dice.pick(AHEADS)}'" if dice.chance(0.3) else ""
    return f"\n  WATERMARK ts DELAY '{delay}'{ahead}"


def _field(column: RandomColumn, declared: bool) -> pa.Field:
    mark = {TYPE_KEY: b"INET"} if column.marked and not declared else {}
    if column.kind is Kind.INET and pa.types.is_integer(column.array.type):
        mark[ADDRESS_KEY] = b""
    return pa.field(column.name, column.array.type, metadata=mark or None)


def _in_blocks(array: pa.Array) -> pa.Array:
    return array.take(pa.array(np.repeat(np.arange(len(array)), BLOCK)))
