"""Functions, casts, CASE and prefixes on random columns, against DuckDB. The seed is part of a test's name."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from penstock.logical import expressions as ex
from penstock.logical.query import Field, Stream
from penstock.logical.resolve.app import resolve_query
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, STRING, TIMESTAMP, TINYINT, Kind
from penstock.runtime.expressions.evaluate import Addresses, Operand, Scope, evaluate
from penstock.testing.oracle.addresses import code_of_text, prefix_code
from penstock.testing.oracle.duck import Translator
from support.amounts import quick_and

ROWS = 300
SEED = 20240711
FIELDS = (
    Field("ts", TIMESTAMP), Field("u", TIMESTAMP), Field("a", BIGINT), Field("b", BIGINT), Field("k", TINYINT),
    Field("x", DOUBLE), Field("y", DOUBLE), Field("p", BOOLEAN), Field("q", BOOLEAN), Field("s", STRING),
    Field("r", STRING), Field("n", STRING), Field("m", STRING), Field("src", INET), Field("dst", INET),
)  # fmt: skip
STREAM = Stream("r", FIELDS, "x:a", (), "ts")
COLUMNS = {field.name: ex.Column(field.name, field.type) for field in FIELDS}
PREFIXES = [ex.Prefix(COLUMNS[name], length) for name in ("src", "dst") for length in (0, 8, 24, 32, 33, 64, 100, 128)]

INTS = [0, 1, -1, 2, 7, -7, 10, 15, 25, -25, 99, 150, 10**18, 2**62, -(2**62), 2**63 - 1, -(2**63), -(2**63) + 1]
FLOATS = [
    0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 1.005, 1e-300, 1e18, 1e300, -1e308, 2.0**63,
    -(2.0**63), 127.5, -128.9, math.inf, -math.inf, math.nan, 3.0, -8.0, 1 / 3,
]  # fmt: skip
TEXTS = [
    "", " ", "a", "A", "ab", "Ab ", "  abc", "é", "É", "ÀÉÎ", "ß", "a%b", "a_b", "a\\b", "x\ty", "日本語", "👍🏽ok",
    "e\u0301", "aaa", "abab", "host.example.EDU", "line\nbreak", "ΑΣ", "%",
]  # fmt: skip
NUMBERS = [
    "0", "1", "-1", "+7", " 42 ", "007", "128", "-128", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "00000000000000000000012", "99999999999999999999", "1.5", "-2.50", ".5", "1.", "1e3",
    "1E-3", "1e999", "-1e400", "e3", "", " ", "abc", "1 2", "--1", "0x10", "true", "F", "YES", "no", "t", "nan",
    "inf", "1e", "+", "٣",
]  # fmt: skip
MOMENTS = [
    "2024-05-06", "2024-02-29", "2023-02-29", "2024-13-01", "2024-00-10", "2024-04-31", "1900-02-29", "2000-02-29",
    "2024-05-06 07:08", "2024-05-06T07:08:09", "2024-05-06 07:08:09.5", "2024-05-06 23:59:59.999999Z",
    "2024-05-06 24:00:00", "2024-05-06 07:60:00", "2024-05-06 07:08:60", "0001-01-01", "0000-01-01", "9999-12-31",
    "1969-12-31 23:59:59.000001", " 2024-05-06 ", "2024-5-6", "soon", "", "2024-05-06 07", "2024-05-06+01:00",
]  # fmt: skip
TIMES = [
    0, 1, -1, 999_999, 1_714_979_289_500_000, -62_135_596_800_000_000, 253_402_300_799_999_999, 951_782_400_000_000,
    4_102_444_799_999_999, -2_208_988_800_000_001, 1_709_251_199_000_000, 3 * 10**17, -3 * 10**17,
]  # fmt: skip
ADDRESSES = [
    "10.1.2.3", "10.1.2.0", "10.1.255.4", "0.0.0.0", "255.255.255.255", "::", "::1", "2001:db8::1",
    "2001:db8:0:1::5", "2001:db8:ffff::", "::ffff:10.1.2.3", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
]  # fmt: skip


@cache
def raw() -> dict[str, list[object]]:
    chance = random.Random(SEED)
    kinds: dict[str, list[object]] = {
        "ts": [*TIMES], "u": [*TIMES], "a": [*INTS], "b": [*INTS], "k": [0, 1, -1, 6, 17, 127, -128],
        "x": [*FLOATS], "y": [*FLOATS], "p": [True, False], "q": [True, False], "s": [*TEXTS], "r": [*TEXTS],
        "n": [*NUMBERS], "m": [*MOMENTS], "src": [*ADDRESSES], "dst": [*ADDRESSES],
    }  # fmt: skip

    def fresh(name: str) -> object:
        if name in ("x", "y"):
            return chance.choice([chance.uniform(-100, 100), chance.gauss(0, 1e10)])
        if name in ("ts", "u"):
            return chance.randrange(-(10**16), 10**16)
        return chance.randrange(-200, 200) if name in ("a", "b") else chance.choice(kinds[name])

    columns = {}
    for name, values in kinds.items():
        made = [*values, *(fresh(name) if chance.random() < 0.5 else chance.choice(values) for _ in range(ROWS))]
        columns[name] = [None if chance.random() < 0.15 else value for value in made[-ROWS:]]
        columns[name][: len(values)] = values
        chance.shuffle(columns[name])
    return columns


def operand(name: str, encoded: bool) -> Operand:
    column = raw()[name]
    valid = np.array([value is not None for value in column])
    match COLUMNS[name].type.kind:
        case Kind.STRING:
            strings = pa.array(column, pa.string())
            return Operand(strings.dictionary_encode() if encoded else strings, valid)
        case Kind.INET:
            parsed = [ip_address(str(value)) if value is not None else ip_address("0.0.0.0") for value in column]
            version = np.array([address.version for address in parsed], np.uint8)
            high = np.array([int(address) >> 64 for address in parsed], np.uint64)
            low = np.array([int(address) & ((1 << 64) - 1) for address in parsed], np.uint64)
            return Operand(Addresses(version, high, low), valid)
        case Kind.DOUBLE:
            return Operand(np.array([0.0 if value is None else value for value in column], np.float64), valid)
        case Kind.BOOLEAN:
            return Operand(np.array([bool(value) for value in column]), valid)
    return Operand(np.array([0 if value is None else value for value in column], np.int64), valid)


@cache
def table() -> tuple[pa.Table, Mapping[ex.Expression, str]]:
    types = {Kind.STRING: pa.string(), Kind.DOUBLE: pa.float64(), Kind.BOOLEAN: pa.bool_(), Kind.INET: pa.string()}
    arrays: dict[str, pa.Array] = {"row": pa.array(range(ROWS))}
    names: dict[ex.Expression, str] = {}
    for name, column in COLUMNS.items():
        values = raw()[name]
        if column.type.kind is Kind.INET:
            values = [None if value is None else code_of_text(str(value)) for value in values]
        arrays[name] = pa.array(values, types.get(column.type.kind, pa.int64()))
        names[column] = name
    for i, prefix in enumerate(PREFIXES):
        codes = arrays[prefix.column.name].to_pylist()
        arrays[f"prefix{i}"] = pa.array([None if c is None else prefix_code(c, prefix.length) for c in codes])
        names[prefix] = f"prefix{i}"
    return pa.table(arrays), names


def resolved(text: str) -> ex.Expression:
    """In WHERE, where addresses may be computed too."""
    where = resolve_query("q", f"SELECT 1 FROM r [RANGE '1 s'] WHERE ({text}) IS NULL", [STREAM])[-1].where
    assert isinstance(where, ex.IsNull)
    return where.operand


def expected(expression: ex.Expression) -> list[object]:
    data, names = table()
    translator = Translator(names)
    text = f"SELECT {translator.sql(expression)} FROM data ORDER BY row"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("data", data)
        return [row[0] for row in connection.execute(text, translator.parameters or None).fetchall()]


def computed(expression: ex.Expression, encoded: bool) -> list[object]:
    def lookup(leaf: ex.Expression) -> Operand:
        assert isinstance(leaf, ex.Column)
        return operand(leaf.name, encoded)

    result = evaluate(expression, Scope(lookup, ROWS))
    valid = np.ones(ROWS, bool) if result.valid is None else result.valid
    values = result.values
    if isinstance(values, Addresses):
        parts = zip(values.version, values.high, values.low, strict=True)
        values = [f"{v}{(int(h) << 64) + int(low):0{8 if v == 4 else 32}x}" for v, h, low in parts]
    if isinstance(values, np.ndarray):
        assert values.dtype.kind == {Kind.DOUBLE: "f", Kind.BOOLEAN: "b"}.get(expression.type.kind, "i")
    listed = values.to_pylist() if isinstance(values, pa.Array) else list(values)
    return [value if there else None for value, there in zip(listed, valid, strict=True)]


def same(one: object, other: object) -> bool:
    if one is None or other is None:
        return one is other
    if isinstance(one, float) and isinstance(other, float):
        near = math.isclose(one, other, rel_tol=1e-12, abs_tol=0.0)
        return near or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def check(text: str, encoded: bool = True) -> None:
    expression = resolved(text)
    wanted, got = expected(expression), computed(expression, encoded)
    wrong = [
        {name: raw()[name][i] for name in sorted(ex.columns(expression))} | {"wanted": w, "got": g}
        for i, (w, g) in enumerate(zip(wanted, got, strict=True))
        if not same(w, float(g) if isinstance(w, float) and g is not None else g)  # type: ignore[arg-type]
    ]
    assert not wrong, (text, wrong[:3])


FUNCTIONS = """
abs(a) | abs(k) | abs(x) | sign(a) | sign(x) | floor(x) | ceil(x) | ceiling(-x) | floor(a) | round(x) | round(-x)
round(x, 2) | round(x, -2) | round(x, 18) | round(x, -18) | round(a) | round(a, 3) | round(a, -1) | round(a, -2)
round(a, -18) | round(a, -17) | sqrt(x) | sqrt(a) | ln(x) | ln(a) | log10(x) | exp(x) | exp(k) | power(x, y)
pow(a, k) | power(x, 2) | power(x, 0.5) | mod(a, b) | mod(x, y) | a % k | x % 3 | a / b | x / y | a + b | a - b
a * b | -a | x * a | least(a, b) | greatest(a, b) | least(x, y) | greatest(x, y) | least(x, a) | greatest(a, 5, k)
least(s, r, 'b') | greatest(s, r) | least(ts, u) | greatest(src, dst) | least(src, '10.1.2.3') | least(p, q)
greatest(a) | coalesce(a, b) | coalesce(x, a, 1) | coalesce(s, r, 'none') | coalesce(ts, u) | coalesce(src, dst)
coalesce(p, q, TRUE) | coalesce(NULL, k, a) | coalesce(src, '::1') | nullif(a, b) | nullif(k, 1) | nullif(x, y)
nullif(s, 'a') | nullif(s, r) | nullif(src, dst) | nullif(a, x) | nullif(ts, '2024-05-06 07:08:09.5') | if(p, a, b)
iif(a > 0, s, 'no') | if(p, x, a) | lower(s) | upper(s) | length(s) | substr(s, 1) | substr(s, 2) | substr(s, 2, 1)
substring(s, -2) | substr(s, -2, 1) | substr(s, -5, 3) | substr(s, -2, 5) | substr(s, 3, 0) | substr(s, 2, 2000000000)
concat(s, r) | s || r | s || '-' || r | concat(s) | s || NULL | 'a' || s | trim(s) | ltrim(s) | rtrim(s)
trim(s, 'a ') | ltrim(s, 'é') | trim(s, '') | replace(s, 'a', 'bb') | replace(s, '', 'x') | replace(s, 'ab', '')
replace(s, 'é', NULL) | starts_with(s, 'a') | starts_with(s, '') | year(ts) | month(ts) | day(ts) | hour(ts)
minute(ts) | second(ts) | epoch(ts) | epoch('1970-01-02') | extract(hour FROM ts) | EXTRACT(epoch FROM ts)
date_trunc('second', ts) | date_trunc('MINUTE', ts) | date_trunc('hour', ts) | date_trunc('day', ts)
date_trunc('week', ts) | date_trunc('month', ts) | date_trunc('quarter', ts) | date_trunc('year', ts)
ts + INTERVAL '5 minutes' | ts - INTERVAL '1 week' | INTERVAL '1' DAY + ts | ts - u | u - TIMESTAMP '2024-01-01'
ts < u | ts + INTERVAL '-1 hour' | CASE WHEN p THEN a WHEN q THEN b ELSE 0 END | CASE WHEN p THEN a END
CASE k WHEN 6 THEN 'tcp' WHEN 17 THEN 'udp' ELSE s END | CASE WHEN a > b THEN x ELSE a END
CASE WHEN p THEN src ELSE dst END | CASE s WHEN r THEN 1 WHEN 'a' THEN 2 END | CASE WHEN p THEN NULL ELSE ts END
CASE WHEN p THEN p ELSE q END | CASE WHEN NULL THEN 1 ELSE 2 END
"""
CASTS = """
CAST(a AS TINYINT) | CAST(a AS SMALLINT) | CAST(a AS INT) | CAST(k AS BIGINT) | CAST(a AS DOUBLE) | CAST(a AS BOOLEAN)
CAST(x AS BIGINT) | CAST(x AS INT) | CAST(x AS TINYINT) | CAST(x AS BOOLEAN) | CAST(p AS INT) | CAST(p AS DOUBLE)
CAST(p AS STRING) | CAST(a AS STRING) | CAST(ts AS STRING) | CAST(n AS BIGINT) | CAST(n AS INT) | CAST(n AS TINYINT)
CAST(n AS DOUBLE) | n::BOOLEAN | CAST(m AS TIMESTAMP) | m::TIMESTAMP | CAST(s AS DOUBLE) | CAST(NULL AS INT)
a::STRING::INT | CAST(CAST(ts AS STRING) AS TIMESTAMP) | CAST('2024-05-06' AS TIMESTAMP) | x::REAL | CAST('12' AS INT)
(a + 1)::SMALLINT
"""
TESTS = """
s LIKE 'a%' | s LIKE 'a!%%' ESCAPE '!' | s LIKE '!!_' ESCAPE '!' | s NOT LIKE '%a_b' ESCAPE 'a' | s ILIKE 'A%'
s ILIKE '%é%' | s ILIKE 'À%' | s NOT ILIKE '_' | s ILIKE 'ab!_' ESCAPE '!' | a IS DISTINCT FROM b
s IS NOT DISTINCT FROM r | x IS NOT DISTINCT FROM y | a IS DISTINCT FROM NULL | src IS DISTINCT FROM dst | p IS TRUE
p IS NOT FALSE | s = NULL | src = NULL | x = NULL | p = NULL | ts = NULL | s IN ('a', NULL) | s NOT IN ('a', 'é')
x IN (1.5, 3) | s < r | s >= r | 'b' < s | lower(s) = 'ab' | upper(s) || 'x' > r | length(s) > 2
length(s) IN (1, 2, 3) | src = '10.1.2.3' | src < dst | src IN ('::1', '10.1.2.3') | src > '255.255.255.255'
coalesce(s, r) LIKE '%a%' | NULL | a BETWEEN b AND 100 | src/24 = '10.1.2.0/24' | src/24 <> '10.1.2.0/24'
src/8 IN ('10.0.0.0/8', '0.0.0.0/8') | src/24 NOT IN ('10.1.2.0/24', NULL) | src/64 = '2001:db8::/64'
src/64 = '10.1.2.3/32' | src/128 = '::ffff:10.1.2.3/128' | src/0 = '0.0.0.0/0' | src/0 = '::/0' | src/24 = dst/24
src/33 = dst/33 | src/100 < dst/100 | src/64 >= '2001:db8:0:1::/64' | src/32 = '2001:db8::/32' | src/24 IS NULL
'10.1.2.0/24' < src/24 | src/24 IS NOT DISTINCT FROM dst/24 | src/8 BETWEEN '10.0.0.0/8' AND dst/8
"""


def listed(texts: str) -> list[str]:
    return [text.strip() for line in texts.strip().splitlines() for text in line.split(" | ")]


@pytest.mark.parametrize("encoded", [True, False], ids=["encoded", "plain"])
@pytest.mark.parametrize("text", listed(FUNCTIONS) + listed(CASTS) + listed(TESTS))
def test_agrees_with_duckdb(text: str, encoded: bool) -> None:
    check(text, encoded)


# -- expressions of expressions

GRAMMAR: dict[str, list[str]] = {
    "int": [
        "a", "b", "k", "3", "-7", "({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} % {int})",
        "abs({int})", "sign({num})", "length({text})", "CASE WHEN {test} THEN {int} ELSE {int} END",
        "coalesce({int}, {int})", "hour({time})", "nullif({int}, {int})", "CAST({num} AS INT)", "CAST(n AS BIGINT)",
        "greatest({int}, {int})", "year({time})", "round({int}, -1)", "CAST({test} AS INT)",
        "if({test}, {int}, {int})",
    ],
    "real": [
        "x", "y", "0.5", "({num} / {num})", "({real} + {num})", "sqrt({num})", "floor({real})",
        "least({real}, {num})", "CASE WHEN {test} THEN {real} END", "({time} - {time})", "epoch({time})",
        "CAST({int} AS DOUBLE)", "abs({real})", "nullif({real}, 0)", "coalesce({real}, {int})",
    ],
    "num": [
        "{int}", "{real}",
    ],
    "text": [
        "s", "r", "n", "'ab'", "({text} || {text})", "lower({text})", "upper({text})", "substr({text}, 2, 3)",
        "trim({text})", "replace({text}, 'a', 'é')", "CASE WHEN {test} THEN {text} ELSE {text} END",
        "coalesce({text}, {text})", "CAST({int} AS STRING)", "greatest({text}, {text})", "nullif({text}, {text})",
        "CAST({test} AS STRING)",
    ],
    "time": [
        "ts", "u", "date_trunc('week', {time})", "({time} + INTERVAL '90 minutes')", "coalesce({time}, {time})",
        "CAST(m AS TIMESTAMP)", "least({time}, TIMESTAMP '2024-01-01')", "if({test}, {time}, {time})",
    ],
    "inet": [
        "src", "dst", "coalesce({inet}, {inet})", "if({test}, {inet}, '10.1.2.3')", "least({inet}, {inet})",
    ],
    "test": [
        "p", "q", "({int} < {int})", "({num} = {num})", "({text} >= {text})", "({text} LIKE '%a%')",
        "({time} > {time})", "({inet} = {inet})", "({test} AND {test})", "({test} OR {test})", "(NOT {test})",
        "({num} IS NULL)", "({int} IN (1, 2, NULL))", "({text} IS DISTINCT FROM {text})",
        "starts_with({text}, 'a')", "(src/24 = '10.1.2.0/24')", "coalesce({test}, {test})",
    ],
}  # fmt: skip


def generate(kind: str, depth: int, chance: random.Random) -> str:
    choices = GRAMMAR[kind] if depth > 0 else [form for form in GRAMMAR[kind] if "{" not in form]
    if not choices:  # numbers of either kind
        return generate("int", depth, chance)
    form = chance.choice(choices)
    for inner in GRAMMAR:
        while "{" + inner + "}" in form:
            form = form.replace("{" + inner + "}", generate(inner, depth - 1, chance), 1)
    return form


@pytest.mark.parametrize("seed", quick_and(range(60), range(60, 150)))
def test_random_expressions_agree_with_duckdb(seed: int) -> None:
    chance = random.Random(seed)
    kind = chance.choice(["int", "real", "text", "time", "inet", "test"])
    check(generate(kind, 3, chance), encoded=chance.random() < 0.5)


# -- scopes


def test_groups_look_up_prefixes_and_computed_keys_as_a_whole() -> None:
    prefix, made = ex.Prefix(COLUMNS["src"], 24), ex.Computed("=a + b", resolved("a + b"), BIGINT)
    asked: list[ex.Expression] = []

    def lookup(leaf: ex.Expression) -> Operand:
        asked.append(leaf)
        return operand("src" if leaf == prefix else "a", encoded=False)

    for leaf in (prefix, made):
        evaluate(ex.IsNull(leaf), Scope(lookup, ROWS, grouped=True))
    assert asked == [prefix, made]
    assert computed(made, encoded=False) == computed(made.expression, encoded=False)


@pytest.mark.parametrize(
    "text", ["lower(s)", "concat(s, r)", "coalesce(s, 'x')", "CAST(a AS STRING)", "year(ts)", "n::INT"]
)
def test_no_rows(text: str) -> None:
    def lookup(leaf: ex.Expression) -> Operand:
        assert isinstance(leaf, ex.Column)
        empty = pa.array([], pa.string()).dictionary_encode()
        return Operand(empty if leaf.type == STRING else np.zeros(0, np.int64), np.zeros(0, bool))

    result = evaluate(resolved(text), Scope(lookup, 0))
    assert len(result.values) == 0


def test_texts_that_become_equal_share_a_code() -> None:
    strings = pa.array(["a", "A", None, "b"]).dictionary_encode()
    result = evaluate(resolved("upper(s)"), Scope(lambda _: Operand(strings, np.array([True, True, False, True])), 4))
    assert sorted(result.values.dictionary.to_pylist()) == ["A", "B"]
    assert result.values.indices.null_count == 0
