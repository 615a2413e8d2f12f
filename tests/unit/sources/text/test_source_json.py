"""JSON sources against Python's json: which lines are objects, what their values are, what is bad."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, STRING, TIMESTAMP
from penstock.sources.base import BAD, NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_LONG, UNREADABLE, Split, fields
from penstock.sources.text import blocks as text_blocks
from penstock.sources.text.json import open_json
from penstock.sources.text.source import TextSource

COLUMNS = (
    Field("s", STRING),
    Field("i", INT),
    Field("x", DOUBLE),
    Field("b", BOOLEAN),
    Field("a.b", BIGINT),
    Field("a.b.c", STRING),
    Field("é", STRING),
)


class Number(str):
    """A number as it is written."""


def write(path: Path, data: bytes | str) -> str:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def read(source: TextSource, batch_rows: int = 1000, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
    names = source.schema().names
    split = Split(start, source.rows() if stop is None else stop)
    return [row for batch in source.read(split, names, batch_rows) for row in batch.to_pylist()]


def refuse(text: str) -> None:
    raise ValueError(text)


def paths(pairs: Any, prefix: str, found: dict[str, Any]) -> dict[str, Any]:
    """Values by keys joined with dots, the last one of each; objects are lists of pairs in tuples."""
    for key, value in pairs:
        found[prefix + key] = value
        if isinstance(value, tuple):
            paths(value, f"{prefix}{key}.", found)
    return found


def value_of(field: Field, value: Any) -> tuple[Any, bool]:
    """(value, bad) as the source should have it."""
    if value is None:
        return None, False
    number = isinstance(value, Number)
    if field.type.kind is STRING.kind:
        sound = isinstance(value, str) and not number and not re.search("[\ud800-\udfff]", value)
        return (str(value), False) if sound else (None, True)
    if field.type.kind is BOOLEAN.kind:
        return (value, False) if isinstance(value, bool) else (None, True)
    if field.type.kind is DOUBLE.kind:
        return (float(value), False) if number else (None, True)
    whole = (
        number
        and re.fullmatch("-?[0-9]+", value)
        and -(1 << field.type.bits - 1) <= int(value) < 1 << field.type.bits - 1
    )
    return (int(value), False) if whole else (None, True)


def expected(line: bytes, limit: int) -> dict[str, Any]:
    reason, values = None, {}
    try:
        if len(line) > limit:
            reason = TOO_LONG
        else:
            text = line.decode()
            found = json.loads(
                text, object_pairs_hook=tuple, parse_int=Number, parse_float=Number, parse_constant=refuse
            )
            reason = None if isinstance(found, tuple) else NOT_OBJECT
            values = paths(found, "", {}) if reason is None else {}
    except UnicodeDecodeError:
        reason = NOT_UTF8
    except ValueError:
        reason = NOT_JSON
    row: dict[str, Any] = {UNREADABLE: reason}
    for field in COLUMNS:
        value, bad = value_of(field, values.get(field.name))
        row[field.name], row[BAD + field.name] = value, bad or reason is not None
    return row


def plain_lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line.strip(b" \t\r")]


def compare(source: TextSource, lines: list[bytes], limit: int, rng: random.Random) -> None:
    assert source.rows() == len(lines)
    for _ in range(3):
        start = rng.randint(0, len(lines))
        stop = rng.randint(start, len(lines))
        rows = read(source, rng.choice([1, 3, 100]), start, stop)
        assert len(rows) == stop - start
        for row, line in zip(rows, lines[start:stop], strict=True):
            for name, value in expected(line, limit).items():
                got = row.get(name, False if name.startswith(BAD) else None)
                assert got == value and math.copysign(1, got or 0) == math.copysign(1, value or 0) \
                    if isinstance(value, float) else got == value, (line, name)  # fmt: skip


def random_value(rng: random.Random, depth: int) -> Any:
    texts = ["", "x", "größe", "a\nb", '"', "\\", "\u0001", "😀", "\ud800", "\udc00x", "/", "10.0.0.1"]
    numbers = [0, -0.0, 1.5, -7, 10**12, 2**31, -(2**31), 1e300, 1e-7, 123456789012345678901234567890]
    match rng.randint(0, 7 if depth < 3 else 5):
        case 0 | 1:
            return rng.choice(texts)
        case 2 | 3:
            return rng.choice(numbers)
        case 4:
            return rng.choice([True, False])
        case 5:
            return None
        case 6:
            return [random_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return random_object(rng, depth + 1)


def random_object(rng: random.Random, depth: int) -> dict[str, Any]:
    keys = ["s", "i", "x", "b", "a", "b", "c", "a.b", "b.c", "a.b.c", "é", "other", "", "a."]
    return {rng.choice(keys): random_value(rng, depth) for _ in range(rng.randint(0, 8))}


def spoilt(rng: random.Random, line: bytes) -> bytes:
    """A line with a byte or two changed."""
    some = b'{}[]:,"\\ue0123.-+ttruefalsenull \x01\xff\xc3'
    for _ in range(rng.randint(1, 2)):
        at = rng.randint(0, len(line))
        line = line[:at] + rng.choice([b"", bytes([rng.choice(some)])]) + line[at + rng.randint(0, 2) :]
    return line.replace(b"\n", b"")


@pytest.mark.parametrize("seed", range(100))
def test_any_line_reads_as_python_reads_it(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(text_blocks, "BLOCK", rng.choice([7, 64, 1000, 1 << 16]))
    monkeypatch.setattr(text_blocks, "STRIDE", rng.choice([1, 3, 50]))
    limit = rng.choice([100, 1 << 20])
    lines = [b'{"s": "sound"}', b'{"s": "sound"}']
    for _ in range(100):
        separators = rng.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])
        line = json.dumps(random_object(rng, 0), ensure_ascii=rng.random() < 0.5, separators=separators)
        data = line.encode("utf-8", "surrogatepass")
        lines.append(spoilt(rng, data) if rng.random() < 0.4 else data)
    lines += [
        b"",
        b"  ",
        b"null",
        b"[]",
        b"7",
        b'"x"',
        b"{}{}",
        b"{} x",
        b'{"i":1}' + b" " * 200,
        b'{"s":"\\u12"}',
        b"{,}",
    ]
    lines += [
        b'{"i":1,"i":2}',
        b'{"a":{"b":1},"a.b":2}',
        b'{"\\u0073":"k"}',
        b'{"a":[{"b":1}]}',
        b"\t{}\r",
        b'{"i":01}',
    ]
    lines += [
        b'{"i":-}',
        b'{"i":1.}',
        b'{"i":.5}',
        b'{"x":1e}',
        b'{"x":NaN}',
        b'{"s":"\\x"}',
        b'{"i":1,}',
        b'{"i" 1}',
        b"{]",
    ]
    head, rest = lines[:2], lines[2:]
    rng.shuffle(rest)
    data = rng.choice([b"\n", b"\r\n"]).join(head + rest) + rng.choice([b"", b"\n"])
    source = open_json(write(tmp_path / "a.json", data), {"longest_record": str(limit)}, COLUMNS)
    compare(source, plain_lines(data), limit, rng)


def test_deep_lines(tmp_path: Path) -> None:
    sound = '{"i": ' + "[" * 400 + "]" * 400 + ', "s": "after"}'
    deep = '{"i": ' + "[" * 600 + "]" * 600 + "}"
    rows = read(open_json(write(tmp_path / "a.json", f"{sound}\n{deep}\n"), {}, COLUMNS[:2]))
    assert [(row["s"], row[UNREADABLE]) for row in rows] == [("after", None), (None, NOT_JSON)]


def test_times_and_addresses(tmp_path: Path) -> None:
    columns = (Field("ts", TIMESTAMP), Field("ip", INET))
    text = '{"ts":"2026-01-01T12:00:00+01:00","ip":"::1"}\n{"ts":1767265200,"ip":5}\n{"ts":null}\n'
    path = write(tmp_path / "a.json", text)
    rows = read(open_json(path, {}, columns))
    assert [row["ts"] and row["ts"].timestamp() for row in rows] == [1767265200, None, None]
    assert [(row[BAD + "ts"], row[BAD + "ip"]) for row in rows] == [(False, False), (True, True), (False, False)]
    text = '{"ts":1767265200.000001}\n{"ts":"1767265200.25"}\n{"ts":17672652e2}\n{"ts":true}\n'
    rows = read(open_json(write(tmp_path / "b.json", text), {"timestamp_format": "epoch"}, columns))
    assert [row["ts"] and row["ts"].isoformat()[11:26] for row in rows] == [
        "11:00:00.000001", "11:00:00.250000", "11:00:00+00:00", None
    ]  # fmt: skip
    assert [row[BAD + "ts"] for row in rows] == [False, False, False, True]


def test_paths_may_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '{"id":{"orig_h":"10.0.0.1"},"id.resp_h":"10.0.0.2"}\n')
    columns = (Field("Src", INET), Field("dst", INET), Field("id.orig_h", STRING))
    source = open_json(path, {"path_src": "id.orig_h", "path_dst": "id.resp_h"}, columns)
    assert read(source) == [{"Src": "10.0.0.1", "dst": "10.0.0.2", "id.orig_h": "10.0.0.1"}]
    assert source.fingerprint() != open_json(path, {}, columns).fingerprint()
    with pytest.raises(SourceError, match="option 'path_x' is for no column"):
        open_json(path, {"path_x": "y"}, columns)
    with pytest.raises(SourceError, match="unknown option 'speed' of json"):
        open_json(path, {"speed": "y"}, columns)


def test_columns_are_told_from_the_first_records(tmp_path: Path) -> None:
    lines = [
        '{"t":"2026-01-01","i":1,"x":1,"b":true,"s":"a","o":{"p":null,"q":{"r":2}},"l":[1]}',
        '{"x":1.5,"z":1}',
        "broken",
    ]
    source = open_json(write(tmp_path / "a.json", "\n".join(lines)), {})
    kinds = {field.name: field.type for field in fields(source.schema())}
    assert kinds == {
        "t": TIMESTAMP, "i": BIGINT, "x": DOUBLE, "b": BOOLEAN, "s": STRING, "o.p": STRING, "o.q.r": BIGINT, "z": BIGINT
    }  # fmt: skip
    with pytest.raises(SourceError, match="no JSON object to tell the columns from"):
        open_json(write(tmp_path / "b.json", "\n\n"), {})


@pytest.mark.parametrize("text", ['[{"a":1},\n{"a":2}]\n', '{\n  "a": 1\n}\n', '{"a": 1,\n "b": 2}\n', " [ ]"])
def test_json_that_is_not_line_by_line(tmp_path: Path, text: str) -> None:
    declared = (Field("a", INT),)
    source = open_json(str(tmp_path), {}, declared)
    path = write(tmp_path / "a.json", text)
    for columns in (declared, None):
        with pytest.raises(SourceError, match=r"a.json' is .*, not one JSON object per line"):
            open_json(path, {}, columns)
    with pytest.raises(RunError, match=r"a.json' is .*, not one JSON object per line"):
        source.arrivals()
