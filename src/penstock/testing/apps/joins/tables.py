"""Random tables: by unique or repeated keys, by ranges that overlap or not, by prefixes of which the longest counts.

A table knows what it is tied to: the pool of a key, which every stream has, or a column of one stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from itertools import pairwise
from typing import Any

import pyarrow as pa

from penstock.logical.types import BIGINT, DOUBLE, INET, INT, STRING, TIMESTAMP, Kind, Type
from penstock.testing.apps.joins.keys import KeyPool, fitting, stored
from penstock.testing.apps.joins.streams import DrawnStream, Frame
from penstock.testing.apps.joins.values import Drawn, drawn_key, literal
from penstock.testing.apps.random_values import GARBAGE
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.columns import read_column
from penstock.testing.oracle.joins.spec import FieldSpec, TableSpec

LABELS = ("red", "green", "blue", "host-1.example", "")
MOST_ROWS = 60


@dataclass(frozen=True)
class Tied:
    """`column` of a stream is tied to columns of the table: one, or two that are bounds; `closed`: up to the last."""

    column: str
    lower: str
    upper: str | None = None
    closed: bool = False


@dataclass(frozen=True)
class DrawnTable:
    """`stream` is the only one that it can be tied to; None: any."""

    spec: TableSpec
    ties: tuple[Tied, ...]
    columns: tuple[Drawn, ...]
    stream: str | None = None


def random_table(dice: Dice, frame: Frame, streams: tuple[DrawnStream, ...], number: int) -> DrawnTable:
    """One that fits some of the streams."""
    name = f"t{number}"
    kind = dice.pick(("unique", "unique", "repeated", "repeated", "ranges", "ranges", "longest", "both", "times"))
    stream = dice.pick(streams)
    addresses = [c for c in stream.columns if c.type.kind is Kind.INET]
    numbers = [c for c in stream.columns if c.type.kind in (Kind.INTEGER, Kind.DOUBLE) and not c.odd and not c.whole]
    if addresses and (kind == "longest" or dice.chance(0.35)):
        return _longest(dice, stream, dice.pick(addresses), name)
    if kind == "times":
        return _times(dice, frame, stream, name)
    if kind in ("ranges", "longest") and (addresses or numbers):
        return _ranges(dice, stream, dice.pick([*addresses, *numbers]), name, ())
    if kind == "both" and numbers:
        return _ranges(dice, stream, dice.pick(numbers), name, frame.pools[:1])
    return _keyed(dice, frame.pools[: dice.pick((1, 1, len(frame.pools)))], name, kind == "unique")


def _table(
    dice: Dice,
    name: str,
    keys: dict[str, tuple[Type, list[Any]]],
    ties: tuple[Tied, ...],
    stream: str | None,
    longest: bool = False,
) -> DrawnTable:
    """With a label and a number besides the keys."""
    rows = len(next(iter(keys.values()))[1])
    labels = [None if dice.chance(0.05) else dice.pick(LABELS) for _ in range(rows)]
    amounts = [None if dice.chance(0.1) else dice.between(-9, 90) for _ in range(rows)]
    amount = dice.pick((INT, BIGINT, DOUBLE))
    given = keys | {f"{name}label": (STRING, labels), "amount": (amount, amounts)}
    format = _format(dice, given)
    arrays = {column: stored(dice, values, kind, format != "parquet") for column, (kind, values) in given.items()}
    fields = tuple(FieldSpec(column, kind) for column, (kind, _) in given.items())
    spec = TableSpec(name, fields, pa.table(arrays), format, longest)
    return DrawnTable(spec, ties, (*_columns(given, name),), stream)


def _columns(given: dict[str, tuple[Type, list[Any]]], name: str) -> Iterator[Drawn]:
    for column, (kind, _) in given.items():
        if column == "amount":
            numbers = tuple(literal(text, kind.kind) for text in ("0", "7", "50"))
            yield Drawn(column, kind, numbers, summable=True, small=kind is not DOUBLE, tame=True)
        elif column == f"{name}label":
            yield Drawn(column, kind, tuple(literal(f"'{label}'", Kind.STRING) for label in LABELS))
        else:
            yield drawn_key(column, kind)


def _format(dice: Dice, given: dict[str, tuple[Type, list[Any]]]) -> str:
    """Text holds neither numbers that are none nor texts with line ends; times in text have another form."""
    for kind, values in given.values():
        if kind.kind in (Kind.TIMESTAMP, Kind.BOOLEAN) or (kind.kind is Kind.DOUBLE and not _finite(values)):
            return "parquet"
        if kind.kind is Kind.STRING and any(mark in (v or "") for v in values for mark in "\0\n\r"):
            return "parquet"
    return dice.pick(("parquet", "csv", "csv", "json"))


def _finite(values: list[Any]) -> bool:
    return all(v is None or (abs(float(v)) < 1e200 and float(v) == float(v)) for v in values)


# -- by equality


def _keyed(dice: Dice, pools: tuple[KeyPool, ...], name: str, unique: bool) -> DrawnTable:
    rows = dice.between(1, MOST_ROWS)
    kinds = [dice.pick(pool.kinds) for pool in pools]
    tuples = [tuple(_key(dice, pool, kind) for pool, kind in zip(pools, kinds, strict=True)) for _ in range(rows)]
    if len(pools) == 1 and dice.chance(0.6):  # every key has a row
        tuples += [(_as(one, kinds[0]),) for one in fitting(pools[0].values, kinds[0])]
    if unique:
        tuples = list({repr(_same(one)): one for one in tuples}.values())
    if dice.chance(0.2):
        tuples.append(tuple(None for _ in pools))
    columns = list(zip(*tuples, strict=True))
    named = {f"{name}k{i}": (kind, list(columns[i])) for i, kind in enumerate(kinds)}
    if dice.chance(0.5):  # called as in the streams
        named = {pool.name: entry for pool, entry in zip(pools, named.values(), strict=True)}
    ties = tuple(Tied(pool.name, column) for pool, column in zip(pools, named, strict=True))
    return _table(dice, name, named, ties, None)


def _same(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Equal for values that a join takes as equal."""
    return tuple(str(ip_address(v)) if _is_address(v) else v + 0.0 if isinstance(v, float) else v for v in values)


def _is_address(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(ip_address(value))
    except ValueError:
        return False


def _key(dice: Dice, pool: KeyPool, kind: Type) -> Any:
    values = fitting((*pool.values, *pool.strangers), kind)
    return _as(dice.pick(values), kind)


def _as(value: Any, kind: Type) -> Any:
    return float(value) if kind is DOUBLE else value


# -- by ranges


def _ranges(dice: Dice, stream: DrawnStream, column: Drawn, name: str, pools: tuple[KeyPool, ...]) -> DrawnTable:
    """Of numbers or addresses; with pools, an equality besides."""
    places = _places(stream, column)
    kind = column.type if column.type.kind is not Kind.INTEGER else dice.pick((BIGINT, BIGINT, DOUBLE))
    cuts = sorted({_cut(dice, places) for _ in range(dice.between(2, MOST_ROWS // 2))})
    pairs = list(pairwise(cuts)) or [(cuts[0], cuts[0] + 1)]
    if dice.chance(0.5):  # some overlap
        pairs += [_wider(dice, cuts) for _ in range(dice.between(1, 6))]
    if dice.chance(0.3):  # repeated
        pairs += dice.some(pairs, 3)
    pairs = [(a, b) for a, b in pairs if a < b] or [(cuts[0], cuts[0] + 1)]
    lows, highs = ([_point(place, kind) for place in ends] for ends in zip(*pairs, strict=True))
    keys: dict[str, tuple[Type, list[Any]]] = {}
    ties: list[Tied] = []
    for i, pool in enumerate(pools):
        chosen = dice.pick(pool.kinds)
        keys[f"{name}k{i}"] = (chosen, [_key(dice, pool, chosen) for _ in pairs])
        ties.append(Tied(pool.name, f"{name}k{i}"))
    keys |= {f"{name}low": (kind, lows), f"{name}high": (kind, highs)}
    ties.append(Tied(column.name, f"{name}low", f"{name}high", dice.chance(0.3)))
    return _table(dice, name, keys, tuple(ties), stream.spec.name)


def _places(stream: DrawnStream, column: Drawn) -> list[int]:
    """The column's values as numbers; of addresses their place among all, IPv4 first."""
    values = read_column(stream.table.column(column.name), column.type).array.drop_null().to_pylist()
    if column.type.kind is Kind.INET:
        return sorted({_address_place(code) for code in values}) or [0]
    return sorted({int(v) for v in values if abs(v) < 1 << 50}) or [0]


def _address_place(code: str) -> int:
    return int(code[1:], 16) + ((1 << 32) if code[0] == "6" else 0)


def _cut(dice: Dice, places: list[int]) -> int:
    return max(0, dice.pick(places) + dice.pick((0, 0, 1, -1, 5))) if places[0] >= 0 else dice.pick(places)


def _wider(dice: Dice, cuts: list[int]) -> tuple[int, int]:
    one, other = dice.pick(cuts), dice.pick(cuts)
    return min(one, other), max(one, other)


def _point(place: int, kind: Type) -> Any:
    if kind.kind is not Kind.INET:
        return float(place) if kind.kind is Kind.DOUBLE else place
    return str(ip_address(place) if place < 1 << 32 else _six(place - (1 << 32)))


def _six(number: int) -> str:
    return str(IPv6Address(min(number, (1 << 128) - 1)))


def _times(dice: Dice, frame: Frame, stream: DrawnStream, name: str) -> DrawnTable:
    """By the time of a record, such as shifts or versions of prices."""
    step = frame.span // dice.pick((3, 10))
    starts = [frame.start + i * step for i in range(-1, dice.between(1, 12))]
    ends = [start + dice.pick((step, step, step // 2 + 1, 2 * step)) for start in starts]
    keys = {f"{name}from": (TIMESTAMP, starts), f"{name}till": (TIMESTAMP, ends)}
    tie = Tied("ts", f"{name}from", f"{name}till", dice.chance(0.2))
    return _table(dice, name, keys, (tie,), stream.spec.name)


def _longest(dice: Dice, stream: DrawnStream, column: Drawn, name: str) -> DrawnTable:
    """Prefixes of the stream's own addresses, some inside others, some of all addresses."""
    texts = [str(ip_address(v)) for v in _texts(stream, column)] or ["10.0.0.1"]
    networks = ["0.0.0.0/0"] if dice.chance(0.3) else []
    for _ in range(dice.between(1, MOST_ROWS // 2)):
        address = ip_address(dice.pick(texts))
        length = dice.pick((8, 12, 16, 24, 30, 32) if address.version == 4 else (16, 32, 48, 64, 120, 128))
        networks.append(str(ip_network((address, length), strict=False)))
    if not dice.chance(0.3):
        networks = list(dict.fromkeys(networks))
    parsed = [ip_network(text) for text in networks]
    keys = {
        f"{name}low": (INET, [str(network[0]) for network in parsed]),
        f"{name}high": (INET, [str(network[-1]) for network in parsed]),
    }
    tie = Tied(column.name, f"{name}low", f"{name}high", closed=True)
    return _table(dice, name, keys, (tie,), stream.spec.name, longest=True)


def _texts(stream: DrawnStream, column: Drawn) -> list[Any]:
    values = stream.table.column(column.name).drop_null().unique().to_pylist()
    inside = [v for v in values if not isinstance(v, int) or 0 <= v < 1 << 32]
    return [v for v in inside if v not in GARBAGE and "%" not in str(v)]
