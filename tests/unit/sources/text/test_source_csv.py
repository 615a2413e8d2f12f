"""CSV sources against a plain reader of a few lines: what a record is, what its fields are, what is bad."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import SourceError
from penstock.logical.query import Field
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, SMALLINT, STRING, TIMESTAMP, TINYINT
from penstock.sources.base import BAD, NOT_UTF8, OPEN_QUOTE, TOO_LONG, UNREADABLE, WRONG_FIELDS, Split, fields
from penstock.sources.registry import open_source
from penstock.sources.text import blocks as text_blocks
from penstock.sources.text.csv import open_csv
from penstock.sources.text.source import TextSource

Record = tuple[str | None, list[Any] | None]  # (reason, or None and the fields)


def write(path: Path, data: bytes | str) -> str:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def read(source: TextSource, batch_rows: int = 1000, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
    names = source.schema().names
    split = Split(start, source.rows() if stop is None else stop)
    return [row for batch in source.read(split, names, batch_rows) for row in batch.to_pylist()]


def plain_fields(record: str, delimiter: str, quote: str, escape: str) -> tuple[list[tuple[str, bool]], bool]:
    """The fields of a record and whether each was quoted; True if a quote was not closed."""
    found, at = [], 0
    while True:
        text, quoted, inside = "", False, False
        if at < len(record) and record[at] == quote:
            quoted = inside = True
            at += 1
        while at < len(record) and (inside or record[at] != delimiter):
            if record[at] == escape and at + 1 < len(record):
                text, at = text + record[at + 1], at + 2
            elif inside and record[at] == quote and record[at : at + 2] == quote * 2:
                text, at = text + quote, at + 2
            elif inside and record[at] == quote:
                inside, at = False, at + 1
            else:
                text, at = text + record[at], at + 1
        found.append((text, quoted))
        if at >= len(record):
            return found, inside
        at += 1


def plain_records(text: str, delimiter: str, quote: str, escape: str, comment: str, limit: int) -> list[str]:
    """Cut a text (one letter per byte) into records."""
    found, at = [], 0
    while at < len(text):
        if text[at] == "\n" or text[at : at + 2] == "\r\n" or text[at:] == "\r":
            at += 1
        elif comment and text.startswith(comment, at):
            at = (text.find("\n", at) + 1) or len(text)
        else:
            begin, inside, start = at, False, True
            while at < len(text) and (inside or text[at] != "\n"):
                here, start, was = text[at], False, start
                if here == escape:
                    at += 1
                elif was and here == quote and not inside:
                    inside = True
                elif inside and here == quote and text[at : at + 2] == quote * 2:
                    at += 1
                elif inside and here == quote:
                    inside = False
                elif not inside and here == delimiter:
                    start = True
                at += 1
            at = min(at, len(text))
            if at - begin > limit:
                at = text.find("\n", begin + limit)
                at = len(text) if at < 0 else at
                found.append("x" * (limit + 1))
            else:
                found.append(text[begin:at])
            at += 1
    return found


def expected(
    data: bytes, count: int, delimiter: str, quote: str, escape: str, comment: str, limit: int
) -> list[Record]:
    answer: list[Record] = []
    for record in plain_records(data.decode("latin-1"), delimiter, quote, escape, comment, limit):
        if len(record) > limit:
            answer.append((TOO_LONG, None))
            continue
        line = record[:-1] if record.endswith("\r") else record
        try:
            record.encode("latin-1").decode()
        except UnicodeDecodeError:
            answer.append((NOT_UTF8, None))
            continue
        found, unclosed = plain_fields(line, delimiter, quote, escape)
        if unclosed:
            answer.append((OPEN_QUOTE, None))
        elif len(found) != count:
            answer.append((WRONG_FIELDS, None))
        else:
            texts = [(text.encode("latin-1").decode(), quoted) for text, quoted in found]
            answer.append((None, [None if not quoted and t in ("", "NULL") else t for t, quoted in texts]))
    return answer


@pytest.mark.parametrize("seed", range(150))
def test_any_bytes_read_like_a_plain_reader(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(text_blocks, "BLOCK", rng.choice([5, 17, 64, 1 << 16]))
    monkeypatch.setattr(text_blocks, "STRIDE", rng.choice([1, 2, 3, 50]))
    delimiter, quote = rng.choice([",", "\t", "|"]), rng.choice(['"', '"', "'"])
    escape, comment = rng.choice(["", "", "\\"]), rng.choice(["", "", "#", "//"])
    parts = [
        delimiter,
        delimiter,
        quote,
        quote + quote,
        "\n",
        "\n",
        "\r\n",
        "\r",
        "a",
        "bc",
        "é",
        "NULL",
        "1",
        "\\",
        "#",
        "//",
    ]
    rare = [b"\xff", b"\x80", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"y" * 70]
    pieces = [p.encode() for p in parts] * 4 + rare
    data = b"".join(rng.choice(pieces) for _ in range(rng.choice([0, 1, 5, 40, 400])))
    if rng.random() < 0.5:  # mostly sound records
        cell = [
            b"1",
            b"",
            b"abc",
            f"{quote}x{delimiter}\n{quote}".encode(),
            f"{quote}{quote}".encode(),
            "größe".encode(),
        ]
        lines = [delimiter.encode().join(rng.choice(cell) for _ in range(3)) for _ in range(60)]
        data = b"\n".join(rng.choice(lines) for _ in range(100)) + data
    limit = 64
    declared = tuple(Field(name, STRING) for name in "abc")
    options = {"delimiter": delimiter, "quote": quote, "header": "false", "longest_record": str(limit)}
    options |= {"escape": escape or "none", "null": "NULL"} | ({"comment": comment} if comment else {})
    source = open_csv(str(tmp_path), options, declared)
    write(tmp_path / "some.csv", data)  # later: a source refuses to open if no record has the right number of fields
    source = source.extended(source.arrivals())
    answer = expected(data, 3, delimiter, quote, escape, comment, limit)
    assert source.rows() == len(answer)
    for _ in range(3):
        start = rng.randint(0, len(answer))
        stop = rng.randint(start, len(answer))
        rows = read(source, rng.choice([1, 3, 100]), start, stop)
        assert len(rows) == stop - start
        for row, (reason, texts) in zip(rows, answer[start:stop], strict=True):
            assert row.get(UNREADABLE) == reason
            assert [row[name] for name in "abc"] == (texts or [None] * 3)
            assert [row.get(BAD + name, False) for name in "abc"] == [reason is not None] * 3


@pytest.mark.parametrize("seed", range(20))
def test_places_are_the_bytes_of_records(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(text_blocks, "STRIDE", rng.choice([1, 4, 4096]))
    records = [f"{i},{'x' * rng.randint(0, 9)}" + rng.choice(["", ',"q\nq"', ""]) for i in range(50)]
    text = "n,s\n" + "".join(r + rng.choice(["\n", "\r\n", "\n\n"]) for r in records)
    source = open_csv(write(tmp_path / "flows.csv", text), {})
    for row in range(source.rows()):
        number, byte = re.fullmatch(r"flows.csv, record (\d+), byte (\d+)", source.place(row)).groups()
        assert int(number) == row + 1
        assert text.encode()[int(byte) :].startswith(records[row].encode())


def one_column(tmp_path: Path, kind: Any, values: list[str], **options: str) -> list[tuple[Any, bool]]:
    path = write(tmp_path / "v.csv", "v\n" + "\n".join(f'"{v}"' for v in values) + "\n")
    rows = read(open_csv(path, options, (Field("v", kind),)))
    return [(row["v"], row.get(BAD + "v", False)) for row in rows]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [TINYINT, SMALLINT, INT, BIGINT], ids=str)
def test_integers(tmp_path: Path, kind: Any, seed: int) -> None:
    rng = random.Random(seed)
    edge = 1 << (kind.bits - 1)
    near = [str(sign * (edge * scale + d)) for sign in (1, -1) for scale in (1, 10, 100) for d in (-2, -1, 0, 1, 2)]
    odd = [
        "+7",
        "007",
        "-0",
        "--1",
        "+",
        "-",
        " 12\t",
        "1 2",
        "1.0",
        "1e3",
        "0x1f",
        "٣",
        "9" * 30,
        "0" * 40 + "5",
        "1,5",
    ]
    random_ones = [str(rng.randint(-(10 ** rng.randint(1, 20)), 10 ** rng.randint(1, 20))) for _ in range(200)]
    values = near + odd + random_ones
    answer = []
    for text in values:
        sound = re.fullmatch(r"[+-]?[0-9]+", text.strip(" \t"))
        fits = sound is not None and -edge <= int(text) < edge
        answer.append((int(text), False) if fits else (None, True))
    assert one_column(tmp_path, kind, values) == answer


@pytest.mark.parametrize("seed", range(5))
def test_doubles(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    odd = "1e400 -1e400 1e-400 "
    odd += "1. .5 . +.5e1 -1e-3 1e 1e+ e5 1e5.0 inf -Inf +INFINITY nan NaN infinit 1_0 0x1p3 0e999999999999"
    hard = "5e-324 2.2250738585072011e-308 1.7976931348623157e308 "
    hard += "9007199254740993 123456789012345678901234567890 1e23 +1e23"
    values = [*odd.split(), *hard.split(), " 7.5 ", "0.1", "1e00000000000000000000000001"]
    values += [repr(float(np.frombuffer(rng.randbytes(8), np.float64)[0])) for _ in range(300)]
    values += [f"{rng.uniform(-1e6, 1e6):.{rng.randint(0, 20)}f}" for _ in range(300)]
    answer = one_column(tmp_path, DOUBLE, values)
    for text, (value, bad) in zip(values, answer, strict=True):
        sound = re.fullmatch(r"(?i)[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)", text.strip())
        assert bad == (sound is None), text
        assert bad or np.array(value).tobytes() == np.array(float(text)).tobytes() or value != value, text


def test_booleans(tmp_path: Path) -> None:
    values = ["true", "FALSE", "T", "f", "1", "0", "yes", "tru", "truth", "false ", "10", "2"]
    answer = [(True, False), (False, False), (True, False), (False, False), (True, False), (False, False)]
    assert one_column(tmp_path, BOOLEAN, values) == [
        *answer, (None, True), (None, True), (None, True), (False, False), (None, True), (None, True)
    ]  # fmt: skip


def micros(rows: list[tuple[Any, bool]]) -> list[int | None]:
    assert [bad for _, bad in rows] == [value is None for value, _ in rows]
    times = pa.array([value for value, _ in rows], pa.timestamp("us", tz="UTC"))
    return times.cast(pa.int64()).to_pylist()


@pytest.mark.parametrize("seed", range(5))
def test_iso_times(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    moments = np.array([rng.randint(-62135596800 * 10**6, 253402300799 * 10**6) for _ in range(300)], "M8[us]")
    texts, answer = [], []
    for moment in moments:
        digits, zone = rng.randint(0, 6), rng.choice(["", "Z", "z", "+00", "-00:00", "+0000"])
        cut = int(moment.astype("i8")) // 10 ** (6 - digits) * 10 ** (6 - digits)
        text = str(np.datetime64(cut, "us")).rstrip("0") if digits else str(np.datetime64(cut, "us"))[:19]
        text = f"{text[:19]}{(text[19:] or '.').ljust(digits + 1, '0')}" if digits else text
        texts.append(text.replace("T", rng.choice(["T", " ", "t"])) + rng.choice(["", "789"]) * (digits == 6) + zone)
        answer.append(cut)
    assert micros(one_column(tmp_path, TIMESTAMP, texts)) == answer


def test_iso_times_one_by_one(tmp_path: Path) -> None:
    noon = 1767268800 * 10**6
    hour = 3600 * 10**6
    sound = {
        "2026-01-01": noon - 12 * hour,
        "2026-01-01T12:00": noon,
        " 2026-01-01T12:00:00,5 ": noon + 500_000,
        "2026-01-01T12:00:00.123456789Z": noon + 123_456,
        "2026-01-01T12:00+01:30": noon - hour * 3 // 2,
        "2026-01-01T12:00:00-0230": noon + hour * 5 // 2,
        "2024-02-29": 1709164800 * 10**6,
        "1969-12-31T23:59:59.9999999": -1,
    }
    assert micros(one_column(tmp_path, TIMESTAMP, list(sound))) == list(sound.values())
    wrong = ["2026-02-29", "2026-13-01", "2026-00-10", "2026-01-32", "2026-01-00", "0000-01-01", "2026-1-1", "26-01-01"]
    wrong += [
        "2026-01-01T24:00",
        "2026-01-01T12:60",
        "2026-01-01T12:00:60",
        "2026-01-01T12",
        "2026-01-01T12:00:",
        "now",
    ]
    wrong += [
        "2026-01-01T12:00:00.",
        "2026-01-01T12:00:00+25",
        "2026-01-01T12:00:00+1",
        "2026-01-01T12:00:00 Z",
        "1767268800",
    ]
    wrong += ["2026-01-01X12:00", "2026-01-01T12:00:00+01:", "2026/01/01", "2026-01-01T12:00:0", "20260101T120000Z"]
    assert micros(one_column(tmp_path, TIMESTAMP, wrong)) == [None] * len(wrong)


def test_epochs_and_patterns(tmp_path: Path) -> None:
    values = [
        "1331901000.000001",
        "0",
        "-1.5",
        "1.3319e9",
        "1331901000.1234567",
        "1e-7",
        "",
        "12a",
        "1e",
        "99999999999999",
    ]
    answer = [1331901000000001, 0, -1500000, 1331900000000000, 1331901000123456, 0]
    rows = one_column(tmp_path, TIMESTAMP, values[:6], timestamp_format="epoch")
    assert micros(rows) == answer
    bad = one_column(tmp_path, TIMESTAMP, [*values[7:9], "99999999999999999"], timestamp_format="epoch")
    assert bad == [(None, True)] * 3
    for form, unit in (("epoch_ms", 1000), ("epoch_us", 1), ("epoch_ns", 0.001)):
        rows = one_column(tmp_path, TIMESTAMP, ["1331901000001", "-7000", "5.5"], timestamp_format=form)
        assert micros(rows) == [int(1331901000001 * unit), int(-7000 * unit), int(5.5 * unit)]
    rows = one_column(tmp_path, TIMESTAMP, ["31/12/2025 10:11:12", "x"], timestamp_format="%d/%m/%Y %H:%M:%S")
    assert micros(rows) == [1767175872 * 10**6, None]


def test_nulls_are_texts_without_quotes(tmp_path: Path) -> None:
    declared = (Field("s", STRING), Field("n", INT), Field("ip", INET))
    path = write(tmp_path / "a.csv", 's,n,ip\n,,\n"","",""\nNULL,\\N,NULL\n"NULL","7", 10.0.0.1 \n-,-,-\n')
    rows = read(open_csv(path, {}, declared))
    assert [row["s"] for row in rows] == [None, "", None, "NULL", "-"]
    assert [row["n"] for row in rows] == [None, None, None, 7, None]
    assert [row["ip"] for row in rows] == [None, None, None, "10.0.0.1", "-"]
    assert [row[BAD + "n"] for row in rows] == [False] * 4 + [True]
    rows = read(open_csv(path, {"null": "-, none"}, declared))
    assert rows[4] == {"s": None, "n": None, "ip": None, BAD + "n": False}
    assert rows[2] == {"s": "NULL", "n": None, "ip": "NULL", BAD + "n": True}


def test_marks_blank_lines_and_newlines(tmp_path: Path) -> None:
    declared = (Field("a", INT), Field("b", STRING))
    text = b'\xef\xbb\xbf\r\n\na,b\r\n1,"x\r\ny"\r\n\r\n\n2,z\r\r\n3,last'
    source = open_csv(write(tmp_path / "a.csv", text), {}, declared)
    assert read(source) == [{"a": 1, "b": "x\r\ny"}, {"a": 2, "b": "z\r"}, {"a": 3, "b": "last"}]
    assert read(open_csv(write(tmp_path / "b.csv", b"a,b\r\n1,x\r"), {}, declared)) == [{"a": 1, "b": "x"}]
    for nothing in (b"", b"\n\r\n\r", b"\xef\xbb\xbf", b"a,b"):
        assert open_csv(write(tmp_path / "c.csv", nothing), {}, declared).rows() == 0


def test_a_log_with_comments_and_tabs(tmp_path: Path) -> None:
    text = "#separator \\x09\n#fields\tts\thost\tn\n1331901000.5\t10.0.0.1\t-\n#close\n1331901001.0\t::1\t5\n"
    declared = (Field("ts", TIMESTAMP), Field("host", INET), Field("n", INT))
    options = {"delimiter": "tab", "comment": "#", "null": "-", "timestamp_format": "epoch"}
    source = open_csv(write(tmp_path / "conn.log", text), options, declared)
    assert [row["n"] for row in read(source)] == [None, 5]
    assert source.place(1) == f"conn.log, record 2, byte {text.index('1331901001')}"


def test_headers(tmp_path: Path) -> None:
    a_b = (Field("a", INT), Field("b", STRING))
    wide = write(tmp_path / "wide.csv", "b,c,a\nx,y,1\n")
    assert read(open_csv(wide, {}, a_b)) == [{"a": 1, "b": "x"}]
    bare = write(tmp_path / "bare.csv", "1,x\n2,y\n")
    assert read(open_csv(bare, {}, a_b)) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert open_csv(bare, {"header": "false"}).schema().names == ["column1", "column2"]
    assert open_csv(wide, {"header": "false"}, (*a_b, Field("d", INT))).rows() == 2
    with pytest.raises(SourceError, match=r"column 'a' is not in the header of .*bare.csv"):
        open_csv(bare, {"header": "true"}, a_b)
    with pytest.raises(SourceError, match=r"column 'd' is not in the header of .*wide.csv"):
        open_csv(wide, {}, (*a_b, Field("d", INT)))
    with pytest.raises(SourceError, match=r"column 'a' is twice or more in the header"):
        open_csv(write(tmp_path / "twice.csv", "a,b,a\n"), {}, a_b)
    with pytest.raises(SourceError, match=r"has 3 fields, not 2"):
        open_csv(write(tmp_path / "three.csv", "1,2,3\n"), {}, a_b)
    with pytest.raises(SourceError, match="column 'a' occurs twice in the header"):
        open_csv(write(tmp_path / "twice.csv", "a,b,a\n1,2,3\n"), {})
    with pytest.raises(SourceError, match="a column has no name"):
        open_csv(write(tmp_path / "unnamed.csv", "a,,b\n1,2,3\n"), {})


def test_case_and_blanks_do_not_matter_in_a_header(tmp_path: Path) -> None:
    a_b = (Field("a", INT), Field("b", STRING))
    loose = write(tmp_path / "loose.csv", "B, A ,c\nx,1,y\n")
    assert read(open_csv(loose, {}, a_b)) == [{"a": 1, "b": "x"}]
    assert open_csv(loose, {}).schema().names == ["B", "A", "c"]
    both = write(tmp_path / "both.csv", "A,a,b\n5,1,x\n")
    assert read(open_csv(both, {}, a_b)) == [{"a": 1, "b": "x"}]
    with pytest.raises(SourceError, match=r"column 'a' is twice or more in the header"):
        open_csv(write(tmp_path / "same.csv", "A,A,b\n5,1,x\n"), {}, a_b)


def test_columns_come_from_the_first_file_with_records(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "")
    write(tmp_path / "b.csv", "ts,a\n")
    write(tmp_path / "c.csv", "ts,a\n2026-01-01,1\n")
    assert [field.type for field in fields(open_csv(str(tmp_path), {}).schema())] == [TIMESTAMP, BIGINT]


def test_a_carriage_return_in_quotes_is_text(tmp_path: Path) -> None:
    one = write(tmp_path / "a.csv", '1,"x\ry"')
    assert read(open_csv(one, {}, (Field("a", INT), Field("b", STRING)))) == [{"a": 1, "b": "x\ry"}]


def test_types_are_told_from_the_first_records(tmp_path: Path) -> None:
    text = 'i,x,t,f,s,none,q\n1,1.5,2026-01-01,true,a,,"1"\n,2,2026-01-01T10:00:00Z,False,2,,""\n-3,1e3,,T,,,"3"\n'
    source = open_csv(write(tmp_path / "a.csv", text), {})
    kinds = {field.name: field.type for field in fields(source.schema())}
    assert kinds == {"i": BIGINT, "x": DOUBLE, "t": TIMESTAMP, "f": BOOLEAN, "s": STRING, "none": STRING, "q": BIGINT}
    assert [row["q"] for row in read(source)] == [1, None, 3]
    times = open_csv(write(tmp_path / "b.csv", "ts,n\n1331901000.5,1\n"), {"timestamp_format": "epoch"})
    assert [field.type for field in fields(times.schema())] == [TIMESTAMP, BIGINT]
    write(tmp_path / "0.csv", "")
    assert open_csv(str(tmp_path / "[0a].csv"), {}).rows() == 3
    with pytest.raises(SourceError, match=r"0.csv' has no record to tell the columns from"):
        open_csv(str(tmp_path / "0.csv"), {})


def test_no_columns_still_counts_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n" + "1,2\n" * 100 + "1\n")
    source = open_csv(path, {})
    batches = list(source.read(Split(10, 101), [], 7))
    assert sum(batch.num_rows for batch in batches) == 91
    assert batches[-1].schema.names == [UNREADABLE]
    assert batches[0].schema.names == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": "1"}, "unknown option 'speed' of csv"),
        ({"header": "maybe"}, "option 'header' of csv is 'maybe'"),
        ({"delimiter": "ab"}, "option 'delimiter' of csv is 'ab'"),
        ({"delimiter": "ü"}, "option 'delimiter'"),
        ({"delimiter": '"'}, "must differ"),
        ({"delimiter": "none"}, "must differ"),
        ({"timestamp_format": "us"}, "option 'timestamp_format' of csv is 'us'"),
        ({"timestamp_format": "%d %z"}, "option 'timestamp_format'"),
        ({"longest_record": "0"}, "option 'longest_record'"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict[str, str], message: str) -> None:
    path = write(tmp_path / "a.csv", "a\n1\n")
    with pytest.raises(SourceError, match=message):
        open_source(f"csv:{path}", options)


def test_errors_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match=r"no such file or folder: .*nowhere\.csv"):
        open_csv(str(tmp_path / "nowhere.csv"), {}, (Field("a", INT),))
    with pytest.raises(SourceError, match=r"no \*\.csv file in folder"):
        open_csv(str(tmp_path), {})
    with pytest.raises(SourceError, match="no csv file given"):
        open_csv("", {})
    with pytest.raises(SourceError, match="UTF-16"):
        open_csv(write(tmp_path / "wide.csv", "a,b\n".encode("utf-16")), {})
    with pytest.raises(SourceError, match="has a name that is taken"):
        open_csv(write(tmp_path / "flag.csv", "bad:x\n1\n"), {})
    path = write(tmp_path / "a.csv", "a\n1\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(SourceError, match=r"cannot read .*a\.csv': Permission denied"):
        open_csv(path, {})
