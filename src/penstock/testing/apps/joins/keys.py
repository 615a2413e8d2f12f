"""Values that streams and tables are joined by: one pool per key, from which each side draws in its own way.

Sides differ in type (INT beside BIGINT beside DOUBLE, addresses as text and as numbers), in skew, in how many keys are
NULL, and in values that no other side has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import pyarrow as pa

from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, SMALLINT, STRING, TIMESTAMP, Kind, Type
from penstock.testing.apps.random_values import GARBAGE, ODD_TEXTS
from penstock.testing.apps.randomness import Dice

NULLS = (0.0, 0.0, 0.0, 0.05, 0.3)
DISTINCT = (1, 3, 5, 8, 8, 25, 25, 80)
EDGE = 1 << 53  # from here on a double cannot tell whole numbers apart


@dataclass(frozen=True)
class KeyPool:
    """`kinds` are the types that a side may have."""

    name: str
    values: tuple[Any, ...]
    strangers: tuple[Any, ...]
    kinds: tuple[Type, ...]

    @property
    def mixed(self) -> bool:
        """Whether whole numbers may meet doubles."""
        return DOUBLE in self.kinds and len(self.kinds) > 1


@dataclass(frozen=True)
class KeyColumn:
    """A side's own column of a pool."""

    pool: KeyPool
    type: Type
    array: pa.Array


def random_pool(dice: Dice, name: str, few: bool = False) -> KeyPool:
    """`few`: of a key beside another."""
    makers: tuple[Callable[[Dice, str, int], KeyPool], ...] = (
        *(_integers, _integers, _integers, _mixed, _mixed, _texts, _texts),
        *(_addresses, _addresses, _doubles, _edges, _truths, _moments),
    )
    return dice.pick(makers)(dice, name, dice.pick(DISTINCT[:3] if few else DISTINCT))


def draw_key(dice: Dice, pool: KeyPool, rows: int) -> KeyColumn:
    """A column of a stream."""
    kind = dice.pick(pool.kinds)
    values = fitting(pool.values, kind)
    if dice.chance(0.4):
        values += fitting(pool.strangers, kind)
    if kind.kind is Kind.INET and dice.chance(0.1):
        values += list(dice.some(GARBAGE, 2))
    chosen = [values[i] for i in dice.places(rows, len(values))]
    mask = dice.rng.random(rows) < dice.pick(NULLS)
    return KeyColumn(pool, kind, stored(dice, [None if m else v for v, m in zip(chosen, mask, strict=True)], kind))


def stored(dice: Dice, values: list[Any], kind: Type, text: bool = False) -> pa.Array:
    """Values in one of the forms in which a file may have them; in files of text addresses are text."""
    match kind.kind:
        case Kind.INTEGER:
            widths = {16: (pa.int16(),), 32: (pa.int32(),), 64: (pa.int64(), pa.int64())}[kind.bits]
            return pa.array(values, dice.pick(widths))
        case Kind.DOUBLE:
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        case Kind.STRING:
            return pa.array(values, pa.string()).cast(dice.pick((pa.string(), pa.string(), pa.large_string())))
        case Kind.INET:
            return pa.array(values, pa.string()) if text else _stored_addresses(dice, values)
        case Kind.BOOLEAN:
            return pa.array(values, pa.bool_())
        case _:
            return pa.array(values, pa.timestamp("us"))


def _stored_addresses(dice: Dice, values: list[Any]) -> pa.Array:
    four = all(v is None or (v not in GARBAGE and ip_address(v).version == 4) for v in values)
    if four and dice.chance(0.5):
        return pa.array([None if v is None else int(ip_address(v)) for v in values], pa.uint32())
    return pa.array(values, pa.string())


def fitting(values: tuple[Any, ...], kind: Type) -> list[Any]:
    if kind.kind is not Kind.INTEGER:
        return list(values)
    limit = 1 << (kind.bits - 1)
    found = [int(v) for v in values if math.isfinite(v) and v == int(v) and -limit <= v < limit]
    return found or [0]


# -- pools


def _integers(dice: Dice, name: str, count: int) -> KeyPool:
    low = dice.pick((0, 0, -40, 1_000_000, -(1 << 40)))
    kinds = (INT, BIGINT, SMALLINT) if abs(low) < 1_000 else (BIGINT, INT) if low > 0 else (BIGINT,)
    return KeyPool(name, tuple(range(low, low + count)), tuple(range(low + count, low + count + 5)), kinds)


def _mixed(dice: Dice, name: str, count: int) -> KeyPool:
    strangers = (math.nan, -0.0, 0.5, math.inf, 2.5)
    return KeyPool(name, tuple(range(-2, count)), strangers, (INT, DOUBLE, DOUBLE, BIGINT))


def _doubles(dice: Dice, name: str, count: int) -> KeyPool:
    values = (math.nan, 0.0, -0.0, math.inf, -math.inf, *(float(v) / 4 for v in range(count)))
    return KeyPool(name, values, (1e300, 5e-324), (DOUBLE,))


def _edges(dice: Dice, name: str, count: int) -> KeyPool:
    """Whole numbers that differ only beyond what a double holds."""
    values = (EDGE - 1, EDGE, EDGE + 1, EDGE + 2, -EDGE, -EDGE - 1, (1 << 63) - 1, -(1 << 63), 0, 1)
    return KeyPool(name, values, (7,), (BIGINT,))


def _texts(dice: Dice, name: str, count: int) -> KeyPool:
    hosts = tuple(f"host-{i}.example" for i in range(count))
    return KeyPool(name, hosts if dice.chance(0.6) else (*ODD_TEXTS, *hosts[:3]), ("", "stranger"), (STRING,))


def _addresses(dice: Dice, name: str, count: int) -> KeyPool:
    four = [f"10.{i % 3}.{i // 7}.{i % 7}" for i in range(count)]
    values = four if dice.chance(0.5) else [*four, "::1", "::ffff:10.0.0.1", "2001:DB8::A", "2001:db8:1::", "::"]
    return KeyPool(name, tuple(values), ("192.0.2.1", "255.255.255.255", "0.0.0.0"), (INET,))


def _truths(dice: Dice, name: str, count: int) -> KeyPool:
    return KeyPool(name, (True, False), (True,), (BOOLEAN,))


def _moments(dice: Dice, name: str, count: int) -> KeyPool:
    base = dice.pick((0, -1, 1_700_000_000_000_000))
    values = tuple(base + i * 1_000_003 for i in range(min(count, 40)))
    return KeyPool(name, values, (base - 1,), (TIMESTAMP,))
