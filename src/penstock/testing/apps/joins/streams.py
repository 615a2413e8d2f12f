"""Random streams that have something to do with each other: common keys, overlapping times, unequal in all else.

They differ in density, in where they begin and end, in disorder, in their watermarks; some have none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.logical.types import TIMESTAMP, Kind
from penstock.testing.apps.joins.keys import KeyColumn, KeyPool, draw_key
from penstock.testing.apps.joins.values import Drawn, drawn, drawn_key
from penstock.testing.apps.random_values import (
    MAKERS,
    RandomColumn,
    doubles,
    extreme_integers,
    in_unit,
    integers,
    wide_integers,
)
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.columns import Numbers
from penstock.testing.oracle.joins.spec import FieldSpec, StreamSpec

SECOND = 1_000_000
SPANS = (12, 60, 600, 7_200, 90_000)  # seconds between first and last record, all divisible by six
STARTS = (-90 * SECOND, 0, 951_782_400 * SECOND, 1_794_000_000 * SECOND)
ROWS = ((0, 4), *((20, 80), (80, 300), (300, 900)) * 3, (900, 2_000))
DELAYS = (0, 0, 5, 20, 100, 300, 3_000)  # thousandths of the span
BLOCK = 6
PLAIN, WIDE, HUGE = "plain", "wide", "huge"


@dataclass(frozen=True)
class Frame:
    """What the streams of an app share. `sums`: of ordinary numbers, of blocks that are wide inside, or too large."""

    start: int
    span: int
    pools: tuple[KeyPool, ...]
    sums: str

    @property
    def marked(self) -> bool:
        """Whether there may be watermarks: where sums are odd, nothing may be late."""
        return self.sums == PLAIN


@dataclass(frozen=True)
class DrawnStream:
    spec: StreamSpec
    keys: tuple[KeyColumn, ...]
    columns: tuple[Drawn, ...]  # all but the time
    table: pa.Table


def random_frame(dice: Dice, pools: tuple[KeyPool, ...]) -> Frame:
    sums = WIDE if dice.chance(0.1) else HUGE if dice.chance(0.05) else PLAIN
    return Frame(dice.pick(STARTS), dice.pick(SPANS) * SECOND, pools, sums)


def random_stream(dice: Dice, frame: Frame, name: str, number: int) -> DrawnStream:
    rows = dice.between(*dice.pick(ROWS))
    blocks = frame.sums == WIDE
    rows = -(-rows // BLOCK) if blocks else rows
    time = _times(dice, frame, rows)
    keys = tuple(draw_key(dice, pool, rows) for pool in frame.pools)
    made = _others(dice, frame, rows, number)
    arrays = [time, *(key.array for key in keys), *(column.array for column in made)]
    if blocks:
        arrays = [array.take(pa.array(np.repeat(np.arange(rows), BLOCK))) for array in arrays]
    columns = [*(drawn_key(key.pool.name, key.type, key.pool.values) for key in keys), *map(drawn, made)]
    if blocks:
        wide = wide_integers(dice, f"w{number}", rows * BLOCK)
        columns.append(drawn(wide, whole=True))
        arrays.append(wide.array)
    table = pa.table(dict(zip(["ts", *(column.name for column in columns)], arrays, strict=True)))
    fields = (FieldSpec("ts", TIMESTAMP), *(FieldSpec(column.name, column.type) for column in columns))
    delay, ahead = _marks(dice, frame)
    return DrawnStream(StreamSpec(name, fields, "ts", delay, ahead), keys, tuple(columns), table)


def thinned(stream: DrawnStream) -> DrawnStream:
    """Half as many records; whole blocks stay whole."""
    rows = np.arange(stream.table.num_rows)
    kept = rows // BLOCK % 2 == 0 if len(rows) >= 2 * BLOCK else rows < len(rows) // 2
    return replace(stream, table=stream.table.filter(pa.array(kept)))


def _marks(dice: Dice, frame: Frame) -> tuple[int | None, int | None]:
    if not frame.marked or dice.chance(0.2):
        return None, None
    delay = frame.span // 1_000 * dice.pick(DELAYS)
    ahead = dice.pick((frame.span // 4, frame.span, frame.span // 20)) if dice.chance(0.15) else None
    return delay, ahead


def _times(dice: Dice, frame: Frame, rows: int) -> pa.Array:
    """In order but for some disorder, over a part of the span."""
    low, high = dice.pick(((0.0, 1.0),) * 4 + ((0.0, 0.5), (0.3, 1.0), (0.4, 1.5)))
    values = frame.start + np.sort(dice.rng.integers(int(low * frame.span), int(high * frame.span), rows))
    if dice.chance(0.3):  # many records at few times
        step = max(1, frame.span // 50)
        values = values // step * step
    values = _disordered(dice, frame, values)
    nulls = dice.pick((0.02, 0.2)) if dice.chance(0.15) else 0.0
    return in_unit(dice, values, nulls)


def _disordered(dice: Dice, frame: Frame, values: Numbers) -> Numbers:
    rows = len(values)
    disorder = dice.pick((0, 0, 1, frame.span // 100, frame.span // 20, frame.span // 3))
    values = values + dice.rng.integers(-disorder, disorder, rows, endpoint=True)
    if dice.chance(0.4):  # stragglers
        back = dice.rng.integers(0, frame.span, rows)
        values = values - np.where(dice.rng.random(rows) < dice.pick((0.02, 0.15)), back, 0)
    if frame.marked and dice.chance(0.15):
        values = values + np.where(dice.rng.random(rows) < 0.01, 2 * frame.span, 0)
    return np.asarray(values, np.int64)


def _others(dice: Dice, frame: Frame, rows: int, number: int) -> list[RandomColumn]:
    """Columns beside the keys; some are called alike in all streams, the others have the stream's number."""
    makers = [dice.pick((integers, doubles)), *(dice.pick(MAKERS) for _ in range(dice.between(0, 3)))]
    found = [make(dice, f"c{i}" if dice.chance(0.5) else f"s{number}c{i}", rows) for i, make in enumerate(makers)]
    if frame.sums == HUGE:
        found.append(replace(extreme_integers(dice, f"s{number}huge", rows), summable=True))
    return [column for column in found if column.kind is not Kind.TIMESTAMP or dice.chance(0.7)]
