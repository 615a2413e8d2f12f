"""Random columns of every type, with the values that break engines.

Each maker below gives one `RandomColumn`.  `summable` marks columns of which any group's sum is well defined:
integers that cannot overflow BIGINT, doubles of which sums lose nothing (multiples of 1/1024) or never cancel;
`tame` those of which sums lose nothing.  Of `odd` columns a text file or a variance cannot hold every value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.logical.types import Kind
from penstock.testing.apps.randomness import Dice

NULL_SHARES = (0.0, 0.0, 0.0, 0.1, 0.1, 0.9, 1.0)
DISTINCT = (1, 2, 7, 40, 1_000, 50_000)
LONGEST, LEAST = (1 << 63) - 1, -(1 << 63)
WIDE = 1 << 62

STORED = {
    "TINYINT": (pa.int8(),),
    "SMALLINT": (pa.int16(), pa.int8(), pa.uint8()),
    "INT": (pa.int32(), pa.int16(), pa.uint16()),
    "BIGINT": (pa.int64(), pa.int32(), pa.uint32()),
}
NARROWER = (("TINYINT", pa.int32(), 100), ("SMALLINT", pa.int64(), 30_000), ("INT", pa.int64(), 2_000_000_000))
ODD_DOUBLES = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, 5e-324, 1e300)
ODD_INTEGERS = (LEAST, LEAST + 1, -1, 0, 1, LONGEST - 1, LONGEST)
ODD_TEXTS = (
    "",
    " ",
    "a",
    "A",
    "ab",
    "a\0",
    "a\0b",
    "é",
    "e\u0301",
    "日本語",
    "\U0001f600",
    "%",
    "_",
    "it's",
    "\n",
    "\\",
)
ODD_ADDRESSES = ("0.0.0.0", "255.255.255.255", "::", "::1", "::ffff:1.2.3.4", "::FFFF:1.2.3.4", "2001:DB8::A", "1::")
GARBAGE = (
    "",
    "nonsense",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    " 1.2.3.4",
    "1.2.3.4/24",
    ":::",
    "fe80::1%eth0",
)


@dataclass(frozen=True)
class RandomColumn:
    """Raw values as they will stand in the file, and what the text of a query may do with them."""

    name: str
    declared: str
    kind: Kind
    array: pa.Array
    summable: bool = False
    small: bool = False  # integers of at most 32 bits
    tame: bool = False  # sums are exact, also after + and *
    odd: bool = False  # some values do not fit their type, or are no finite numbers
    marked: bool = False  # carries the metadata that makes it INET where no schema is declared
    literals: tuple[str, ...] = ()


def with_nulls(dice: Dice, values: Sequence[Any] | np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    mask = dice.rng.random(len(values)) < dice.pick(NULL_SHARES)
    return pa.array(values, kind, mask=mask)


def integers(dice: Dice, name: str, rows: int) -> RandomColumn:
    declared = dice.pick(tuple(STORED))
    stored = dice.pick(STORED[declared])
    # Unsigned types are used over their whole range: only a wider signed type holds them.
    top = 1 << (stored.bit_width - (0 if pa.types.is_unsigned_integer(stored) else 1))
    low = 0 if pa.types.is_unsigned_integer(stored) else max(-top, -(1 << 40))
    pool = dice.rng.integers(low, min(top - 1, 1 << 40), dice.pick(DISTINCT), endpoint=True)
    array = with_nulls(dice, pool[dice.places(rows, len(pool))], pa.int64()).cast(stored)
    literals = (*map(str, pool[:3]), "0", "-1", "7", "2.5")
    small = stored.bit_width <= 32
    return RandomColumn(name, declared, Kind.INTEGER, array, True, small, tame=True, literals=literals)


def extreme_integers(dice: Dice, name: str, rows: int) -> RandomColumn:
    pool = np.array(ODD_INTEGERS, np.int64)
    array = with_nulls(dice, pool[dice.places(rows, len(pool))], pa.int64())
    return RandomColumn(
        name, "BIGINT", Kind.INTEGER, array, literals=("0", str(LONGEST), str(LEAST + 1), "1.5", "9e18")
    )


def too_large_integers(dice: Dice, name: str, rows: int) -> RandomColumn:
    """Some values do not fit their declared type: malformed for the queries that use the column."""
    if dice.chance(0.3):
        pool = np.array([0, 1, LONGEST, LONGEST + 1, (1 << 64) - 1], np.uint64)
        array = with_nulls(dice, pool[dice.places(rows, len(pool))], pa.uint64())
        return RandomColumn(name, "BIGINT", Kind.INTEGER, array, odd=True, literals=("1", str(LONGEST)))
    declared, stored, fitting = dice.pick(NARROWER)
    pool = np.array([0, 1, -1, fitting, -fitting, fitting * 2, -fitting * 2 - 1], np.int64)
    if stored == pa.int32():
        pool = np.append(pool, [1 << 30, -(1 << 31)])
    array = with_nulls(dice, pool[dice.places(rows, len(pool))], stored)
    literals = ("1", str(fitting))
    return RandomColumn(name, declared, Kind.INTEGER, array, True, True, tame=True, odd=True, literals=literals)


def wide_integers(dice: Dice, name: str, rows: int) -> RandomColumn:
    """Blocks of six that add up to little, over partial sums beyond 64 bits; `rows` is a multiple of six."""
    blocks = np.tile(np.array([WIDE, WIDE, WIDE, -WIDE, -WIDE, -WIDE + 1], np.int64), (rows // 6, 1))
    return RandomColumn(name, "BIGINT", Kind.INTEGER, pa.array(dice.rng.permuted(blocks, axis=1).ravel()), True)


def doubles(dice: Dice, name: str, rows: int) -> RandomColumn:
    stored = dice.pick((pa.float64(), pa.float32()))
    pool = dice.rng.integers(-4_000_000, 4_000_000, dice.pick(DISTINCT)) / 1024.0
    array = with_nulls(dice, pool[dice.places(rows, len(pool))], pa.float64()).cast(stored)
    literals = (*(repr(float(v)) for v in pool[:3]), "0.0", "1", "-1e3")
    return RandomColumn(name, "DOUBLE", Kind.DOUBLE, array, True, tame=True, literals=literals)


def integers_as_doubles(dice: Dice, name: str, rows: int) -> RandomColumn:
    pool = dice.rng.integers(-1_000, 1_000, dice.pick(DISTINCT))
    array = with_nulls(dice, pool[dice.places(rows, len(pool))], pa.int64()).cast(dice.pick((pa.int64(), pa.int16())))
    return RandomColumn(name, "DOUBLE", Kind.DOUBLE, array, True, tame=True, literals=("0.5", "0", "-7.0"))


def odd_doubles(dice: Dice, name: str, rows: int) -> RandomColumn:
    pool = np.array(dice.some(ODD_DOUBLES, len(ODD_DOUBLES)) or [math.nan])
    array = with_nulls(dice, pool[dice.places(rows, len(pool))], pa.float64())
    return RandomColumn(name, "DOUBLE", Kind.DOUBLE, array, True, odd=True, literals=("0.0", "-0.0", "1.5", "1e300"))


def wild_doubles(dice: Dice, name: str, rows: int) -> RandomColumn:
    array = with_nulls(dice, dice.rng.lognormal(0.0, 9.0, rows), pa.float64())
    return RandomColumn(name, "DOUBLE", Kind.DOUBLE, array, True, literals=("0.001", "1.0", "1e6"))


def booleans(dice: Dice, name: str, rows: int) -> RandomColumn:
    array = with_nulls(dice, dice.rng.random(rows) < dice.pick((0.0, 0.5, 0.95)), pa.bool_())
    return RandomColumn(name, "BOOLEAN", Kind.BOOLEAN, array, literals=("TRUE", "FALSE"))


def texts(dice: Dice, name: str, rows: int) -> RandomColumn:
    pool = list(ODD_TEXTS) if dice.chance(0.4) else [f"host-{i}.example" for i in range(dice.pick(DISTINCT))]
    if dice.chance(0.2):
        pool += ["x" * 5_000, "x" * 5_000 + "y", "ü" * 300]
    values = [pool[i] for i in dice.places(rows, len(pool))]
    array = with_nulls(dice, np.array(values, dtype=object), pa.string())
    stored = dice.pick((pa.string(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())))
    literals = ("'a'", "''", "'é'", "'it''s'", "'host-1.example'", "'host-3'")
    return RandomColumn(name, "STRING", Kind.STRING, array.cast(stored), literals=literals)


def address_texts(dice: Dice, name: str, rows: int) -> RandomColumn:
    pool = [_address(dice) for _ in range(dice.pick(DISTINCT[:5]))] + dice.some(ODD_ADDRESSES, 4)
    if dice.chance(0.3):
        pool += dice.some(GARBAGE, 5)
    values = [pool[i] for i in dice.places(rows, len(pool))]
    array = with_nulls(dice, np.array(values, dtype=object), pa.string())
    if dice.chance(0.3):
        array = array.dictionary_encode()
    literals = (f"'{pool[0]}'" if pool[0] not in GARBAGE else "'::1'", "'10.0.1.7'", "'::'", "'::ffff:1.2.3.4'")
    return RandomColumn(name, "INET", Kind.INET, array, marked=True, literals=literals)


def address_numbers(dice: Dice, name: str, rows: int) -> RandomColumn:
    pool = dice.rng.integers(0, 1 << 32, dice.pick(DISTINCT), dtype=np.int64)
    if dice.chance(0.5):
        pool = (10 << 24) + pool % 4096
    stored = dice.pick((pa.uint32(), pa.uint32(), pa.uint32(), pa.int64()))
    if stored == pa.int64():
        pool = np.append(pool, [-1, 1 << 32, LEAST, LONGEST])
    array = with_nulls(dice, pool[dice.places(rows, len(pool))], pa.int64()).cast(stored)
    literals = ("'10.0.1.7'", "'128.0.0.0'", "'::1'")
    return RandomColumn(name, "INET", Kind.INET, array, marked=True, odd=stored == pa.int64(), literals=literals)


def _address(dice: Dice) -> str:
    if dice.chance(0.65):
        return ".".join(
            map(str, (dice.pick((10, 10, 192)), dice.between(0, 3), dice.between(0, 255), dice.between(0, 255)))
        )
    if dice.chance(0.2):
        return f"::ffff:10.0.{dice.between(0, 3)}.{dice.between(0, 255)}"
    return f"2001:d{dice.between(0, 3)}8:{dice.between(0, 9)}::{dice.between(0, 65_535):x}"


def timestamps(dice: Dice, name: str, rows: int) -> RandomColumn:
    """A second time column; the stream's own comes from `random_stream`."""
    pool = dice.rng.integers(-(10**14), 2 * 10**15, dice.pick(DISTINCT))
    array = in_unit(dice, pool[dice.places(rows, len(pool))], dice.pick(NULL_SHARES))
    literals = (
        "TIMESTAMP '1970-01-01 00:00:00'",
        "TIMESTAMP '1999-12-31 23:59:59.5'",
        "TIMESTAMP '2026-02-28 12:00:00'",
    )
    return RandomColumn(name, "TIMESTAMP", Kind.TIMESTAMP, array, literals=literals)


def in_unit(dice: Dice, microseconds: np.ndarray[Any, Any], nulls: float) -> pa.Array:
    """Timestamps in a random unit, with and without a zone; nanoseconds that are no whole microseconds, too."""
    unit, zone = dice.pick(("s", "ms", "us", "us", "ns")), dice.pick((None, None, "UTC", "Europe/Berlin", "+05:30"))
    values = np.asarray(microseconds, np.int64)
    if unit == "ns":
        values = values * 1_000 + dice.rng.integers(0, 1_000, len(values))
    else:
        values = np.floor_divide(values, {"s": 1_000_000, "ms": 1_000, "us": 1}[unit])
    mask = dice.rng.random(len(values)) < nulls
    return pa.array(values, pa.int64(), mask=mask).cast(pa.timestamp(unit, tz=zone))


Maker = Callable[[Dice, str, int], RandomColumn]

# Repeated makers are drawn more often.
MAKERS: tuple[Maker, ...] = (
    *(integers, integers, integers, extreme_integers, too_large_integers),
    *(doubles, odd_doubles, wild_doubles, integers_as_doubles, booleans, texts, texts),
    *(address_texts, address_texts, address_numbers, timestamps),
)
