"""Sources that cannot work, as the command line reports them: cli/*.txt are the whole messages."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Case, NoSpark, arrange, compare, penstock

QUERY = "CREATE QUERY q AS SELECT count(*) AS n FROM s [WINDOW 1 HOUR];\n"
BY_A = "CREATE QUERY q AS SELECT a, count(*) AS n FROM s [WINDOW 1 HOUR] GROUP BY a;\n"
COLUMNS = "(ts TIMESTAMP, a BIGINT)"
ROWS = "2026-01-01T00:00:00Z,1\n2026-01-01T00:00:01Z,2\n"
TIMES = pa.array([0, 1_000_000], pa.timestamp("us"))
TABLE = pa.table({"ts": TIMES, "a": [1, 2], "name": ["x", "y"]})


def stream(source: str, columns: str = "", options: str = "") -> str:
    return f"CREATE STREAM s {columns} FROM '{source}'{f' WITH ({options})' if options else ''};\n"


def parquet(name: str = "data.parquet", table: pa.Table = TABLE) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        pq.write_table(table, folder / name)

    return write


def damaged_arrow(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, TABLE.schema) as writer:
            writer.write_table(TABLE)
        (folder / "data.arrow").write_bytes(change(sink.getvalue().to_pybytes()))

    return write


def damaged_parquet(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        parquet()(folder)
        path = folder / "data.parquet"
        path.write_bytes(change(path.read_bytes()))

    return write


def text(name: str, content: str | bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def two(folder: Path) -> None:
    parquet("data/a.parquet")(folder)
    parquet("data/b.parquet", TABLE.set_column(1, "a", pa.array(["1", "2"])))(folder)


def extra(folder: Path) -> None:
    parquet("data/a.parquet")(folder)
    parquet("data/b.parquet", TABLE.append_column("b", pa.array([1, 2])))(folder)


def packed(pack: Callable[[bytes], bytes]) -> bytes:
    """The first half of what these rows are, compressed."""
    whole = pack(b"".join(b"2026-01-01T00:00:00Z,%d\n" % number for number in range(20_000)))
    return whole[: len(whole) // 2]


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def archive(files: dict[str, bytes]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        with zipfile.ZipFile(folder / "a.zip", "w") as made:
            for name, data in files.items():
                made.writestr(name, data)

    return write


PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
CHECK, RUN = "check app.sql", "run app.sql --checkpoint ckpt --output out"
CACHE = "cache = 'unpacked'"
CASES = [
    # Where nothing is, or nothing that can be read.
    Case("source_file_missing", CHECK, stream("parquet:none.parquet") + QUERY),
    Case("source_file_missing_declared", CHECK, stream("csv:none.csv", COLUMNS) + QUERY),
    Case("source_folder_missing", CHECK, stream("parquet:none/") + QUERY),
    Case("source_folder_empty", CHECK, stream("parquet:data") + QUERY, lambda folder: (folder / "data").mkdir()),
    Case("source_folder_of_others", CHECK, stream("csv:.") + QUERY, parquet()),
    Case("source_glob_matches_nothing", CHECK, stream("json:data/*.json") + QUERY),
    Case("source_below_a_file", CHECK, stream("parquet:app.sql/x.parquet") + QUERY),
    Case("source_is_a_pipe", CHECK, stream("csv:pipe.csv") + QUERY, lambda folder: os.mkfifo(folder / "pipe.csv")),
    Case("source_on_another_host", CHECK, stream("parquet:file://host/x.parquet") + QUERY),
    Case(
        "source_cannot_be_read",
        CHECK,
        stream("csv:mem.csv") + QUERY,
        lambda f: (f / "mem.csv").symlink_to("/proc/self/mem"),
    ),
    Case("source_scheme_unknown", CHECK, stream("gopher:data.csv") + QUERY),
    Case("source_kafka", CHECK, stream("kafka:broker:9092/topic") + QUERY),
    Case("source_kafka_declared", CHECK, stream("kafka:broker:9092/topic", COLUMNS) + QUERY),
    Case("source_netflow", CHECK, stream("netflow:nfcapd.202601") + QUERY),
    # What cannot be replayed.
    Case("replay_speed_zero", CHECK, stream("replay:parquet:data.parquet", "", "speed = 0") + QUERY, parquet()),
    Case(
        "replay_speed_no_number", CHECK, stream("replay:parquet:data.parquet", "", "speed = 'fast'") + QUERY, parquet()
    ),
    Case("replay_kept_no_time", CHECK, stream("replay:parquet:data.parquet", "", "kept = 10") + QUERY, parquet()),
    Case("replay_kept_too_short", CHECK, stream("replay:parquet:data.parquet", "", "kept = '1 ms'") + QUERY, parquet()),
    Case("replay_twice", CHECK, stream("replay:replay:pcap:a.pcap") + QUERY),
    Case("replay_stdin", CHECK, stream("replay:stdin:csv") + QUERY),
    Case("replay_view", CHECK, stream("replay:spark:flows") + QUERY),
    Case("replay_speed_negative", CHECK, stream("replay:parquet:data.parquet", "", "speed = -1") + QUERY, parquet()),
    Case("replay_speed_tiny", CHECK, stream("replay:parquet:data.parquet", "", "speed = 1e-9") + QUERY, parquet()),
    Case("replay_missing", CHECK, stream("replay:parquet:missing.parquet") + QUERY),
    Case("replay_dash", CHECK, stream("replay:-") + QUERY),
    Case("replay_kafka", CHECK, stream("replay:kafka:flows") + QUERY),
    Case("replay_nothing", CHECK, stream("replay:") + QUERY),
    Case("replay_unknown", CHECK, stream("replay:gopher:data.csv") + QUERY),
    Case("replay_scheme_missing", CHECK, stream("replay:data.parquet") + QUERY, parquet()),
    Case("replay_option_unknown", CHECK, stream("replay:parquet:data.parquet", "", "sped = 2") + QUERY, parquet()),
    Case(
        "replay_table",
        CHECK,
        stream("parquet:data.parquet")
        + "CREATE TABLE t FROM 'replay:parquet:data.parquet';\n"
        + "CREATE QUERY q AS SELECT t.name, count(*) AS n FROM s [WINDOW 1 HOUR], t WHERE s.a = t.a GROUP BY t.name;\n",
        parquet(),
    ),
    Case("source_on_the_web", CHECK, stream("https://example.com/x.csv") + QUERY),
    Case("source_scheme_missing", CHECK, stream("data.parquet") + QUERY, parquet()),
    Case("source_address_empty", CHECK, stream("parquet:") + QUERY),
    Case("source_empty", CHECK, stream("") + QUERY),
    # Parquet.
    Case("parquet_truncated", CHECK, stream("parquet:data.parquet") + QUERY, damaged_parquet(lambda data: data[:-100])),
    Case("parquet_empty", CHECK, stream("parquet:data.parquet") + QUERY, text("data.parquet", "")),
    Case(
        "parquet_wrong_magic",
        CHECK,
        stream("parquet:data.parquet") + QUERY,
        damaged_parquet(lambda data: data[:-4] + b"PAR2"),
    ),
    Case(
        "parquet_footer_damaged",
        CHECK,
        stream("parquet:data.parquet") + QUERY,
        damaged_parquet(lambda data: data[:-60] + b"x" * 52 + data[-8:]),
    ),
    Case("parquet_is_csv", CHECK, stream("parquet:data.parquet") + QUERY, text("data.parquet", ROWS)),
    Case("arrow_truncated", CHECK, stream("arrow:data.arrow") + QUERY, damaged_arrow(lambda data: data[:-100])),
    Case("arrow_is_csv", CHECK, stream("arrow:data.arrow") + QUERY, text("data.arrow", ROWS)),
    Case("arrow_feather_1", CHECK, stream("arrow:data.arrow") + QUERY, text("data.arrow", "FEA1")),
    Case("parquet_types_differ", CHECK, stream("parquet:data") + QUERY, two),
    Case("parquet_columns_differ", CHECK, stream("parquet:data") + QUERY, extra),
    Case(
        "parquet_without_time", CHECK, stream("parquet:data.parquet") + QUERY, parquet(table=TABLE.drop_columns("ts"))
    ),
    Case(
        "parquet_two_times",
        CHECK,
        stream("parquet:data.parquet") + QUERY,
        parquet(table=TABLE.rename_columns(["t0", "a", "name"]).append_column("t1", TIMES)),
    ),
    Case(
        "parquet_column_not_there",
        CHECK,
        stream("parquet:data.parquet", "(ts TIMESTAMP, color STRING)")
        + BY_A.replace("a,", "color,").replace("BY a", "BY color"),
        parquet(),
    ),
    Case(
        "parquet_type_does_not_fit",
        CHECK,
        stream("parquet:data.parquet", "(ts TIMESTAMP, name BIGINT)") + QUERY.replace("count(*)", "sum(name)"),
        parquet(),
    ),
    Case(
        "parquet_nothing_usable",
        CHECK,
        stream("parquet:data.parquet") + QUERY,
        parquet(table=pa.table({"raw": [b"x"]})),
    ),
    Case(
        "parquet_column_of_lists",
        CHECK,
        stream("parquet:data.parquet") + QUERY.replace("count(*)", "max(tags)"),
        parquet(table=TABLE.append_column("tags", pa.array([[1], [2]]))),
    ),
    Case("parquet_option", CHECK, stream("parquet:data.parquet", options="header = 'true'") + QUERY, parquet()),
    # CSV.
    Case("csv_column_not_in_header", CHECK, stream("csv:a.csv", COLUMNS) + BY_A, text("a.csv", "ts,b\n" + ROWS)),
    Case(
        "csv_header_of_others",
        CHECK,
        stream("csv:a.csv", COLUMNS, "header = 'true'") + BY_A,
        text("a.csv", "time,count\n" + ROWS),
    ),
    Case("csv_column_twice", CHECK, stream("csv:a.csv", COLUMNS) + BY_A, text("a.csv", "ts,a,a\n" + ROWS)),
    Case("csv_column_twice_inferred", CHECK, stream("csv:a.csv") + BY_A, text("a.csv", "ts,a,a\n" + ROWS)),
    Case("csv_column_without_name", CHECK, stream("csv:a.csv") + BY_A, text("a.csv", "ts,a,\n" + ROWS)),
    Case("csv_wrong_delimiter", CHECK, stream("csv:a.csv", COLUMNS, "delimiter = ';'") + BY_A, text("a.csv", ROWS)),
    Case(
        "csv_too_few_fields",
        CHECK,
        stream("csv:a.csv", "(ts TIMESTAMP, a BIGINT, b BIGINT)") + BY_A,
        text("a.csv", ROWS),
    ),
    Case("csv_without_record", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", "")),
    Case("csv_blank_lines", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", "\n\n")),
    Case("csv_header_only", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", "ts,a\n")),
    Case(
        "csv_carriage_returns", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", ("ts,a\n" + ROWS).replace("\n", "\r"))
    ),
    Case(
        "csv_carriage_returns_declared",
        CHECK,
        stream("csv:a.csv", COLUMNS) + QUERY,
        text("a.csv", ("ts,a\n" + ROWS).replace("\n", "\r")),
    ),
    Case("csv_header_missing", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", ROWS)),
    Case("csv_semicolons", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", ("ts,a\n" + ROWS).replace(",", ";"))),
    Case("csv_tabs", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", ("ts,a\n" + ROWS).replace(",", "\t"))),
    Case("csv_no_record_fits", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", "ts,a\n1,2,3\n4,5,6\n")),
    Case("csv_not_text", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", b"ts,a\n" + b"\xff\xfe\x00,\x01\n" * 9)),
    Case(
        "csv_header_misspelt",
        CHECK,
        stream("csv:a.csv", "(ts TIMESTAMP, bytes BIGINT)") + BY_A.replace("a,", "bytes,").replace("BY a", "BY bytes"),
        text("a.csv", "\nts,size,byte\n2026-01-01,1,2\n"),
    ),
    Case("csv_header_of_other_names", CHECK, stream("csv:a.csv", COLUMNS) + BY_A, text("a.csv", "when,count\n" + ROWS)),
    Case(
        "csv_times_of_another_form",
        CHECK,
        stream("csv:a.csv") + QUERY,
        text("a.csv", "when,a\n31/01/2026 10:00,1\n"),
    ),
    Case("csv_utf16", CHECK, stream("csv:a.csv", COLUMNS) + QUERY, text("a.csv", ("ts,a\n" + ROWS).encode("utf-16"))),
    Case("csv_without_time", CHECK, stream("csv:a.csv") + QUERY, text("a.csv", "a,b\n1,2\n")),
    Case("csv_not_the_types", CHECK, stream("csv:a.csv", "(ts TIMESTAMP, a COLOUR)") + QUERY, text("a.csv", ROWS)),
    Case("csv_option_unknown", CHECK, stream("csv:a.csv", COLUMNS, "sep = ';'") + QUERY, text("a.csv", ROWS)),
    Case("csv_option_header", CHECK, stream("csv:a.csv", COLUMNS, "header = 'yes'") + QUERY, text("a.csv", ROWS)),
    Case("csv_option_delimiter", CHECK, stream("csv:a.csv", COLUMNS, "delimiter = '||'") + QUERY, text("a.csv", ROWS)),
    Case("csv_option_same_letters", CHECK, stream("csv:a.csv", COLUMNS, "quote = ','") + QUERY, text("a.csv", ROWS)),
    Case(
        "csv_option_time_format",
        CHECK,
        stream("csv:a.csv", COLUMNS, "timestamp_format = 'unix'") + QUERY,
        text("a.csv", ROWS),
    ),
    Case(
        "csv_option_longest_record",
        CHECK,
        stream("csv:a.csv", COLUMNS, "longest_record = 1") + QUERY,
        text("a.csv", ROWS),
    ),
    # Compressed text: whole files only.
    Case(
        "packed_gz_damaged",
        CHECK,
        stream("csv:a.csv.gz", options=CACHE) + QUERY,
        text("a.csv.gz", b"\x1f\x8b\x08\x00damage"),
    ),
    Case("packed_gz_not_gz", CHECK, stream("csv:a.csv.gz", COLUMNS, CACHE) + QUERY, text("a.csv.gz", ROWS)),
    Case(
        "packed_gz_cut_off",
        "explain app.sql",
        stream("csv:a.csv.gz", COLUMNS, CACHE) + QUERY,
        text("a.csv.gz", packed(lambda data: gzip.compress(data, mtime=0))),
    ),
    Case(
        "packed_xz_cut_off",
        "explain app.sql",
        stream("csv:a.csv.xz", COLUMNS, CACHE) + QUERY,
        text("a.csv.xz", packed(lzma.compress)),
    ),
    Case("packed_xz_not_xz", CHECK, stream("csv:a.csv.xz", COLUMNS, CACHE) + QUERY, text("a.csv.xz", ROWS)),
    Case(
        "packed_zst_cut_off",
        "explain app.sql",
        stream("csv:a.csv.zst", COLUMNS, CACHE) + QUERY,
        text("a.csv.zst", packed(zstd)),
    ),
    Case("packed_zst_not_zst", CHECK, stream("csv:a.csv.zst", COLUMNS, CACHE) + QUERY, text("a.csv.zst", ROWS)),
    Case(
        "packed_bz2_cut_off",
        "explain app.sql",
        stream("csv:a.csv.bz2", COLUMNS, CACHE) + QUERY,
        text("a.csv.bz2", packed(bz2.compress)),
    ),
    Case(
        "packed_cache_is_a_file",
        "explain app.sql",
        stream("csv:a.csv.gz", COLUMNS, "cache = 'app.sql'") + QUERY,
        text("a.csv.gz", gzip.compress(ROWS.encode())),
    ),
    # JSON.
    Case(
        "json_array", CHECK, stream("json:a.json", COLUMNS) + QUERY, text("a.json", '[{"ts": "2026-01-01", "a": 1}]\n')
    ),
    Case(
        "json_array_inferred",
        CHECK,
        stream("json:a.json") + QUERY,
        text("a.json", '[\n{"ts": "2026-01-01", "a": 1}\n]\n'),
    ),
    Case(
        "json_over_lines", CHECK, stream("json:a.json", COLUMNS) + QUERY, text("a.json", '{\n  "ts": "2026-01-01"\n}\n')
    ),
    Case("json_without_object", CHECK, stream("json:a.json") + QUERY, text("a.json", "1\n2\n")),
    Case(
        "json_path_of_no_column",
        CHECK,
        stream("json:a.json", COLUMNS, "path_b = 'x.b'") + QUERY,
        text("a.json", "{}\n"),
    ),
    # Synthetic streams.
    Case("generate_kind_unknown", CHECK, stream("generate:normal") + QUERY),
    Case("generate_auction", CHECK, stream("generate:auction") + QUERY),
    Case("generate_option_unknown", CHECK, stream("generate:zipf", options="flow_length = 3") + QUERY),
    Case("generate_rows_negative", CHECK, stream("generate:zipf", options="rows = '-1'") + QUERY),
    Case("generate_cardinality", CHECK, stream("generate:uniform", options="cardinality = '1, 2'") + QUERY),
    Case("generate_start", CHECK, stream("generate:uniform", options="start = 'yesterday'") + QUERY),
    # Captures.
    Case("pcap_not_a_capture", CHECK, stream("pcap:a.pcap") + QUERY, text("a.pcap", "ts,a\n1,2\n")),
    Case("pcap_empty", RUN, stream("pcap:a.pcap") + QUERY, text("a.pcap", b"")),
    Case("pcap_header_cut", RUN, stream("pcap:a.pcap") + QUERY, text("a.pcap", PCAP[:20])),
    Case("pcap_column_unknown", CHECK, stream("pcap:a.pcap", "(ts TIMESTAMP, size INT)") + QUERY, text("a.pcap", PCAP)),
    Case("pcap_column_mistyped", CHECK, stream("pcap:a.pcap", "(ts TIMESTAMP, src INT)") + QUERY, text("a.pcap", PCAP)),
    Case("pcap_unwrap_unknown", CHECK, stream("pcap:a.pcap", "", "unwrap = 'gre, l2tp'") + QUERY, text("a.pcap", PCAP)),
    Case("pcap_speed", CHECK, stream("pcap:a.pcap", "", "speed = '2'") + QUERY, text("a.pcap", PCAP)),
    Case("pcap_option_unknown", CHECK, stream("pcap:a.pcap", "", "snaplen = 64") + QUERY, text("a.pcap", PCAP)),
    Case("pcap_gz_damaged", CHECK, stream("pcap:a.pcap.gz") + QUERY, text("a.pcap.gz", gzip.compress(PCAP)[:12])),
    Case("pcap_zip_empty", CHECK, stream("pcap:a.zip") + QUERY, archive({})),
    Case("pcap_zip_of_others", CHECK, stream("pcap:a.zip") + QUERY, archive({"notes.txt": b"nothing to capture here"})),
    Case("pcap_zip_damaged", CHECK, stream("pcap:a.zip") + QUERY, text("a.zip", b"PK\x03\x04" + bytes(40))),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: NoSpark())
    arrange(case, tmp_path)
    compare(case, penstock(case.command, tmp_path, monkeypatch, capfd), tmp_path)
