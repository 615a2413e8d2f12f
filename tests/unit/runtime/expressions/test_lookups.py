"""What records find in tables, against plain Python that compares every record with every row."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import RunError, StateError
from penstock.logical import expressions as ex
from penstock.logical.query import Field
from penstock.logical.render import render
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, STRING, TIMESTAMP, Kind, Type
from penstock.runtime.expressions import folders, lookups
from penstock.runtime.expressions.evaluate import Operand, Scope, evaluate
from penstock.runtime.expressions.folders import use_folder
from penstock.runtime.expressions.matching import make
from penstock.runtime.expressions.operands import Addresses, plain
from penstock.sources.arrow.table import taken
from penstock.sources.tables import StoredTable, keep_table, read_table
from penstock.state.data import from_data, to_data
from support.amounts import quick_and

TYPES = {"n": BIGINT, "x": DOUBLE, "at": TIMESTAMP, "s": STRING, "ip": INET, "ok": BOOLEAN}
ENDS = [-(2**63), -(2**63) + 1, 2**63 - 1, 2**63 - 2]
POOLS: dict[Kind, list[Any]] = {
    Kind.INTEGER: [*range(-3, 12), *ENDS],
    Kind.DOUBLE: [-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.5, 1e300, math.inf, -math.inf, math.nan, 5e-324],
    Kind.TIMESTAMP: [*range(-5, 15), 10**15],
    Kind.STRING: ["", "a", "a\0", "ab", "b", "ba", "é", "z", "\U0001f44d", "\uffee", "zz.berkeley.edu", "berkeley.edu"],
    Kind.INET: [
        "0.0.0.0", "0.0.0.1", "10.0.0.0", "10.0.0.9", "10.0.1.0", "10.1.0.0", "255.255.255.255", "::", "::1", "::a00:0",
        "2001:db8::", "2001:db8::1:0:0:1", "2001:db8:0:1::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db8:0:0:ffff:ffff:ffff:ffff",
    ],
    Kind.BOOLEAN: [False, True],
}  # fmt: skip
LENGTHS = (0, 8, 24, 31, 32, 48, 128)
LIMITS = {
    Kind.INTEGER: (-(2**63), 2**63 - 1),
    Kind.TIMESTAMP: (-(2**63), 2**63 - 1),
    Kind.DOUBLE: (-math.inf, math.nan),
}


@pytest.fixture(autouse=True)
def _nothing_held() -> Iterator[None]:
    lookups.classes_of.cache_clear()
    yield
    for kept in (lookups._held, lookups._loaded, folders._folders):
        kept.clear()


# -- plain Python


def ordered(value: Any) -> Any:
    """What values of one type are compared by."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, str) and is_address(value):
        return (ip_address(value).version, int(ip_address(value)))
    return value.encode() if isinstance(value, str) else value


def is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def value_of(expression: ex.Expression, row: dict[str, Any]) -> Any:
    """Of a column or a prefix, as what it is compared by."""
    if isinstance(expression, ex.Prefix):
        text = row[expression.column.name]
        if text is None:
            return None
        address = ip_address(text)
        bits = 32 if address.version == 4 else 128
        kept = min(expression.length, bits)
        return (address.version, int(address) >> (bits - kept) if kept else 0)
    assert isinstance(expression, ex.Column)
    value = row[expression.name]
    return None if value is None else ordered(value)


def holds(operator: str, left: Any, right: Any) -> bool:
    return {"=": left == right, "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[
        operator
    ]


def length_of(bounds: tuple[ex.Bound, ...], row: dict[str, Any]) -> Any:
    """high − low."""
    kind = bounds[0].bound.type.kind
    sides = []
    for operators, nearest in (((">", ">="), max), (("<", "<="), min)):
        values = [row[b.bound.name] for b in bounds if b.operator in operators]
        sides.append(nearest(values, key=ordered) if values else None)
    low, high = sides
    if kind is Kind.INET:
        below, above = (None if one is None else counted(one) for one in sides)
        return (counted("ffff" + ":ffff" * 7) if above is None else above) - (0 if below is None else below)
    low, high = (limit if one is None else one for one, limit in zip((low, high), LIMITS[kind], strict=True))
    if kind is Kind.DOUBLE:
        if math.isnan(low) or low == high:
            return 0.0
        return math.inf if math.isnan(high) else high - low
    return high - low


def counted(text: str) -> int:
    address = ip_address(text)
    return int(address) + (2**32 if address.version == 6 else 0)


def passes(where: ex.Expression | None, row: dict[str, Any]) -> bool:
    if where is None:
        return True
    if isinstance(where, ex.Like):
        assert isinstance(where.operand, ex.Column)
        text = row[where.operand.name]
        return text is not None and text.endswith(where.pattern[1:])
    assert isinstance(where, ex.Comparison)
    assert isinstance(where.right, ex.Literal)
    value = value_of(where.left, row)
    return value is not None and holds(where.operator, value, where.right.value)


def found(match: ex.Match, rows: list[dict[str, Any]], record: dict[str, Any]) -> list[int]:
    """The rows that belong to a record."""
    equal = [(value_of(of, record), column) for of, column in match.equals]
    value = None if match.value is None else value_of(match.value, record)
    if any(one is None for one, _ in equal) or (match.value is not None and value is None):
        return []
    hits = []
    for number, row in enumerate(rows):
        bounds = [(b.operator, value_of(b.bound, row)) for b in match.bounds]
        same = all((other := value_of(column, row)) is not None and one == other for one, column in equal)
        inside = all(bound is not None and holds(operator, value, bound) for operator, bound in bounds)
        if same and inside and (match.longest or passes(match.where, row)):
            hits.append(number)
    if match.longest and hits:
        shortest = min(length_of(match.bounds, rows[hit]) for hit in hits)
        hits = [hit for hit in hits if length_of(match.bounds, rows[hit]) == shortest]
        return [hit for hit in hits if passes(match.where, rows[hit])]
    return hits


# -- random tables, records and matches


def stored(rows: list[dict[str, Any]], types: dict[str, Type]) -> StoredTable:
    arrow = {BIGINT: pa.int64(), DOUBLE: pa.float64(), TIMESTAMP: pa.timestamp("us"), BOOLEAN: pa.bool_()}
    columns = {
        name: pa.array([row[name] for row in rows], arrow.get(kind, pa.string())) for name, kind in types.items()
    }
    source = taken("t", pa.table(columns))
    assert source is not None
    return read_table(source, tuple(Field(name, kind) for name, kind in types.items()), "t")


def held(rows: list[dict[str, Any]], types: dict[str, Type]) -> str:
    table = stored(rows, types)
    lookups.hold(table.digest, table.data)
    return table.digest


def random_rows(rng: random.Random, count: int, types: dict[str, Type], nulls: float) -> list[dict[str, Any]]:
    pools = {name: rng.sample(POOLS[kind.kind], rng.randint(2, len(POOLS[kind.kind]))) for name, kind in types.items()}
    return [{n: None if rng.random() < nulls else rng.choice(pool) for n, pool in pools.items()} for _ in range(count)]


TABLE_TYPES = {f"{name}{side}": kind for name, kind in TYPES.items() for side in ("", "_low", "_high")}


def columns_of(kind: Kind) -> list[ex.Column]:
    return [ex.Column(name, of) for name, of in TABLE_TYPES.items() if of.kind is kind]


def random_match(rng: random.Random, digest: str) -> ex.Match:
    equals: list[tuple[ex.Expression, ex.Expression]] = []
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        name = rng.choice(list(TYPES))
        one, other = ex.Column(name, TYPES[name]), rng.choice(columns_of(TYPES[name].kind))
        if name == "ip" and rng.random() < 0.5:
            length = rng.choice(LENGTHS)
            equals.append((ex.Prefix(one, length), ex.Prefix(other, length)))
        else:
            equals.append((one, other))
    bounds: list[ex.Bound] = []
    name = rng.choice([name for name in TYPES if name != "ok"])
    for _ in range(rng.choice([0, 1, 2, 2, 2, 2, 3, 4])):
        bounds.append(ex.Bound(rng.choice(["<", "<=", ">", ">="]), rng.choice(columns_of(TYPES[name].kind))))
    where: ex.Expression | None = None
    if rng.random() < 0.4:
        where = rng.choice(
            [
                ex.Like(ex.Column("s_low", STRING), "%berkeley.edu"),
                ex.Comparison(">", ex.Column("n", BIGINT), ex.Literal(2, BIGINT)),
            ]
        )
    longest = bool(bounds) and name != "s" and rng.random() < 0.4
    value = ex.Column(name, TYPES[name]) if bounds else None
    return ex.Match("t", digest, tuple(equals), value, tuple(bounds), where, longest)


def records_scope(rng: random.Random, rows: list[dict[str, Any]]) -> Scope:
    table = stored(rows, TYPES)
    operands: dict[ex.Expression, Operand] = {}
    for name, kind in TYPES.items():
        operand = lookups.table_operand(table.data, name, kind)
        if kind is STRING and rng.random() < 0.5:
            operand = Operand(plain(operand.values), operand.valid)
        operands[ex.Column(name, kind)] = operand
    return Scope(operands.__getitem__, len(rows))


def values_of(operand: Operand, rows: int) -> list[Any]:
    """An operand's values as Python has them; addresses as they are compared."""
    values, valid = operand.values, np.ones(rows, bool) if operand.valid is None else operand.valid
    if isinstance(values, Addresses):
        parts = zip(values.version.tolist(), values.high.tolist(), values.low.tolist(), strict=True)
        listed: list[Any] = [(version, high << 64 | low) for version, high, low in parts]
    else:
        listed = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
        listed = [value if value is None else ordered(value) for value in listed]
    return [value if there else None for value, there in zip(listed, valid.tolist(), strict=True)]


@pytest.mark.parametrize("seed", quick_and(range(30), range(30, 400)))
def test_random_matches(seed: int) -> None:
    rng = random.Random(seed)
    nulls = rng.choice([0, 0.1, 0.5])
    rows = random_rows(rng, rng.choice([1, 2, 5, 20, 60]), TABLE_TYPES, nulls)
    records = random_rows(rng, 80, TYPES, rng.choice([0, 0.2]))
    digest, scope = held(rows, TABLE_TYPES), records_scope(rng, records)
    for _ in range(6):
        check_match(random_match(rng, digest), rows, records, scope)


def check_match(match: ex.Match, rows: list[dict[str, Any]], records: list[dict[str, Any]], scope: Scope) -> None:
    expected = [found(match, rows, record) for record in records]
    numbers = values_of(evaluate(ex.Lookup(match, None, BIGINT), scope), len(records))
    classes = lookups.classes_of(match)
    listed = [tuple(classes.rows[a:b].tolist()) for a, b in pairwise(classes.starts.tolist())]
    assert [[] if number is None else list(listed[number]) for number in numbers] == expected
    assert len(listed) == classes.count == len(set(listed))
    assert all(rows == tuple(sorted(rows)) and rows for rows in listed)
    assert classes.unique == all(len(rows) == 1 for rows in listed)
    if classes.unique:
        for name, kind in TABLE_TYPES.items():
            seen = values_of(evaluate(ex.Lookup(match, name, kind), scope), len(records))
            wanted = [value_of(ex.Column(name, kind), rows[hits[0]]) if hits else None for hits in expected]
            assert seen == wanted
    else:
        with pytest.raises(AssertionError, match="several rows"):
            evaluate(ex.Lookup(match, "n", BIGINT), scope)


def test_random_matches_are_of_every_kind() -> None:
    """What the seeds above draw is worth drawing: rows are found, several at once, and none."""
    sizes = set()
    for seed in range(40):
        rng = random.Random(seed)
        rows = random_rows(rng, 20, TABLE_TYPES, 0.1)
        records = random_rows(rng, 20, TYPES, 0.1)
        match = random_match(rng, "")
        sizes |= {(match.longest, min(2, len(found(match, rows, record)))) for record in records}
    assert sizes == {(longest, size) for longest in (False, True) for size in (0, 1, 2)}


# -- networks


@pytest.mark.parametrize("seed", quick_and(range(2), range(2, 60)))
@pytest.mark.parametrize("longest", [False, True])
def test_nested_prefixes(seed: int, longest: bool) -> None:
    """Thousands of networks inside each other, of both versions: more than one step of every search."""
    rng = random.Random(seed)
    networks = [network(rng) for _ in range(rng.choice([50, 400]))]
    rows = [{"low": str(low), "high": str(high), "name": f"n{at % 97}"} for at, (low, high) in enumerate(networks)]
    digest = held(rows, {"low": INET, "high": INET, "name": STRING})
    records = [{"ip": str(near(rng, networks))} for _ in range(150)]
    bounds = (ex.Bound(">=", ex.Column("low", INET)), ex.Bound("<=", ex.Column("high", INET)))
    match = ex.Match("t", digest, (), ex.Column("ip", INET), bounds, None, longest)
    table = stored(records, {"ip": INET})
    operand = lookups.table_operand(table.data, "ip", INET)
    numbers = values_of(evaluate(ex.Lookup(match, None, BIGINT), Scope(lambda _: operand, 150)), 150)
    classes = lookups.classes_of(match)
    listed = [classes.rows[a:b].tolist() for a, b in pairwise(classes.starts.tolist())]
    assert [[] if n is None else listed[n] for n in numbers] == [found(match, rows, record) for record in records]
    assert lookups.problems(match) is None
    if longest:
        assert classes.count <= len(rows)


def network(rng: random.Random) -> tuple[Any, Any]:
    bits, base = rng.choice([(32, 10 << 24), (128, 0x20010DB8 << 96)])
    length = rng.randint(8, 30) if bits == 32 else rng.choice([32, 40, 48, 56, 64, 127])
    size = 1 << (bits - length)
    low = (base + rng.getrandbits(bits // 4 * 3)) // size * size
    low = min(low, (1 << bits) - size)
    make_address = ip_address if bits == 32 else (lambda number: ip_address(number.to_bytes(16, "big")))
    return make_address(low), make_address(low + size - 1)


def near(rng: random.Random, networks: list[tuple[Any, Any]]) -> Any:
    """An address at the edge of a network, or anywhere in it."""
    low, high = rng.choice(networks)
    at = rng.choice([int(low), int(high), int(low) - 1, int(high) + 1, rng.randint(int(low), int(high))])
    at = min(max(at, 0), 2**32 - 1 if low.version == 4 else 2**128 - 1)
    return ip_address(at) if low.version == 4 else ip_address(at.to_bytes(16, "big"))


# -- single cases

LOW, HIGH, N = ex.Column("low", BIGINT), ex.Column("high", BIGINT), ex.Column("n", BIGINT)
INSIDE = (ex.Bound(">=", LOW), ex.Bound("<", HIGH))


def between(rows: list[tuple[Any, Any]], **changes: Any) -> ex.Match:
    digest = held([{"low": low, "high": high} for low, high in rows], {"low": BIGINT, "high": BIGINT})
    return ex.Match("t", digest, (), N, INSIDE, **changes)


def numbers(match: ex.Match, values: list[int]) -> list[Any]:
    scope = Scope(lambda _: Operand(np.array(values)), len(values))
    return values_of(evaluate(ex.Lookup(match, None, BIGINT), scope), len(values))


def test_many_keys_with_gaps() -> None:
    """Hash tables: keys far apart, more than one probe."""
    rng = np.random.default_rng(1)
    keys = np.unique(rng.integers(-(2**63), 2**63 - 1, 5000))
    digest = held([{"k": int(key)} for key in keys], {"k": BIGINT})
    match = ex.Match("t", digest, ((N, ex.Column("k", BIGINT)),))
    asked = [*keys[:3000].tolist(), *(keys[:3000] + 1).tolist()]
    rows = {int(key): row for row, key in enumerate(keys)}
    classes = lookups.classes_of(match)
    assert [None if n is None else int(classes.rows[n]) for n in numbers(match, asked)] == [rows.get(a) for a in asked]


def test_intervals_with_the_same_rows_are_one_class() -> None:
    nested = between([(0, 100), *((at, at + 1) for at in range(10, 90, 2))], longest=True)
    assert lookups.classes_of(nested).count == 41
    assert len({*numbers(nested, [5, 11, 13, 95])}) == 1
    assert len({*numbers(nested, [5, 10, 12])}) == 3


def test_ranges_from_ipv4_into_ipv6_have_lengths_of_129_bits() -> None:
    rows = [{"low": text} for text in ("0.0.0.0", "0.0.0.1", "10.0.0.0", "::", "::1")]
    digest, low = held(rows, {"low": INET}), ex.Column("low", INET)
    match = ex.Match("t", digest, (), ex.Column("ip", INET), (ex.Bound(">=", low),), longest=True)
    asked = lookups.table_operand(stored(rows, {"low": INET}).data, "low", INET)
    found = evaluate(ex.Lookup(match, "low", INET), Scope(lambda _: asked, len(rows)))
    assert values_of(found, len(rows)) == values_of(asked, len(rows))


def test_whole_numbers_among_doubles() -> None:
    digest = held([{"x": 2.0}, {"x": 2.5}, {"x": math.nan}], {"x": DOUBLE})
    match = ex.Match("t", digest, ((N, ex.Column("x", DOUBLE)),))
    assert [n is not None for n in numbers(match, [2, 3])] == [True, False]


def test_one_search_for_all_lookups_of_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    match, calls = between([(0, 5), (5, 9)]), []
    plain_numbers = lookups.Classes.numbers
    monkeypatch.setattr(lookups.Classes, "numbers", lambda *args: calls.append(1) or plain_numbers(*args))
    scope = Scope(lambda _: Operand(np.array([1, 6, 9])), 3)
    assert values_of(evaluate(ex.Lookup(match, "low", BIGINT), scope), 3) == [0, 5, None]
    assert values_of(evaluate(ex.Lookup(match, "high", BIGINT), scope), 3) == [5, 9, None]
    assert len(calls) == 1


def test_neighbouring_chunks_share_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    digest, name = held([{"s": "a"}, {"s": "c"}], {"s": STRING}), ex.Column("s", STRING)
    match = ex.Match("t", digest, ((name, name),))
    words = pa.array(["a", "b", "c"])
    for codes, rows in (([0, 1, 2], [0, None, 1]), ([2, 2, 0], [1, 1, 0])):
        strings = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), words)
        scope = Scope(lambda _, strings=strings: Operand(strings), 3)
        assert values_of(evaluate(ex.Lookup(match, None, BIGINT), scope), 3) == rows
    other = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int32()), pa.array(["c"]))
    scope = Scope(lambda _: Operand(other, np.array([True, False])), 2)
    assert values_of(evaluate(ex.Lookup(match, None, BIGINT), scope), 2) == [1, None]


def test_columns_of_few_rows_have_small_dictionaries() -> None:
    """Tasks intern all words of a dictionary."""
    rows = [{"k": at, "s": f"word {at}"} for at in range(500)]
    digest, k = held(rows, {"k": BIGINT, "s": STRING}), ex.Column("k", BIGINT)
    match = ex.Match("t", digest, ((N, k),), where=ex.Comparison("<", k, ex.Literal(3, BIGINT)))
    strings = evaluate(ex.Lookup(match, "s", STRING), Scope(lambda _: Operand(np.array([2, 400])), 2))
    assert values_of(strings, 2) == [b"word 2", None]
    assert len(strings.values.dictionary) == 3


def test_inverted_ranges_are_told() -> None:
    assert lookups.problems(between([(0, 5), (7, 7), (None, 3)])) is None
    wrong = between([(0, 5), (9, 3), (8, 1)])
    assert lookups.problems(wrong) == "row 2 of the table has low 9 above high 3"
    assert numbers(wrong, [4, 8, 3]) == [0, None, 0]
    kept = between([(0, 5), (9, 3)], where=ex.Comparison("<", LOW, ex.Literal(9, BIGINT)))
    assert lookups.problems(kept) is None
    rows = [{"min_addr": "10.0.0.9", "max_addr": "10.0.0.1"}]
    digest = held(rows, {"min_addr": INET, "max_addr": INET})
    bounds = (ex.Bound(">=", ex.Column("min_addr", INET)), ex.Bound("<", ex.Column("max_addr", INET)))
    match = ex.Match("whois", digest, (), ex.Column("ip", INET), bounds)
    assert lookups.problems(match) == "row 1 of the table has min_addr 10.0.0.9 above max_addr 10.0.0.1"


def test_texts_have_no_shortest_range() -> None:
    digest, s = held([{"s": "a"}], {"s": STRING}), ex.Column("s", STRING)
    match = ex.Match("t", digest, (), s, (ex.Bound(">=", s),), longest=True)
    assert lookups.problems(match) == "a range of texts has no length, so none of them is the shortest"


@pytest.mark.parametrize("longest", [False, True])
def test_overlaps_beyond_all_measure(monkeypatch: pytest.MonkeyPatch, longest: bool) -> None:
    monkeypatch.setattr(make, "MOST_MATCHES", 1000)
    rows = [(0, 100)] * 40 if longest else [(at, 1000 - at) for at in range(40)]
    fits = between(rows[:20] if longest else rows[:30], longest=longest)
    assert numbers(fits, [50]) != [None]
    beyond = between([*rows, *((low + 1000, high + 1000) for low, high in rows)] * 25, longest=longest)
    with pytest.raises(RunError, match="ranges of table 't' overlap too much") as error:
        numbers(beyond, [50])
    assert "match = 'longest'" in error.value.hint


# -- where tables come from


def test_tables_of_a_checkpoint(tmp_path: Path) -> None:
    table, folder, other = (
        stored([{"low": 1, "high": 5}], {"low": BIGINT, "high": BIGINT}),
        tmp_path / "a",
        tmp_path / "b",
    )
    folder.mkdir()
    other.mkdir()
    keep_table(folder, table)
    use_folder(folder)
    use_folder(other)
    assert lookups.table_of(table.digest).equals(table.data)
    (path,) = (folder / "tables").iterdir()
    path.unlink()
    assert lookups.table_of(table.digest).equals(table.data)
    with pytest.raises(StateError, match=f"{other / 'tables' / 'abc.arrow'} is missing"):
        lookups.table_of("abc")


def test_only_the_latest_tables_are_kept(tmp_path: Path) -> None:
    tables = [stored([{"n": n}], {"n": BIGINT}) for n in range(lookups.MOST_TABLES + 2)]
    use_folder(tmp_path)
    for table in tables:
        keep_table(tmp_path, table)
        lookups.table_of(table.digest)
    assert set(lookups._loaded) == {table.digest for table in tables[2:]}
    lookups.hold("held", tables[0].data)
    assert lookups.table_of("held").equals(tables[0].data)
    lookups.release("held")
    with pytest.raises(StateError):
        lookups.table_of("held")


@pytest.mark.parametrize("seed", range(20))
def test_a_match_is_the_same_after_json(seed: int) -> None:
    match = random_match(random.Random(seed), "digest")
    for column, kind in ((None, BIGINT), ("s", STRING)):
        lookup = ex.Not(ex.Lookup(match, column, kind))
        back = from_data(ex.Not, json.loads(json.dumps(to_data(lookup))), "a lookup")
        assert back == lookup
        assert render(back) == render(lookup)
