"""What only shows while records are read: exit code 1 and one message, or a run to the end that accounts for every bad
record. cli/*.txt are the whole messages; all runs share one Spark session."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Case, arrange, compare, penstock, quick_or_slow

from penstock.app.api import App
from penstock.errors import RunError
from penstock.sinks.spark import SparkSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = "run app.sql --checkpoint ckpt --output out"
MOST = 2**63 - 1


def app(source: str, select: str = "count(*) AS n", window: str = "[WINDOW 1 MINUTE]", more: str = "") -> str:
    return f"CREATE STREAM s {source};\nCREATE QUERY q AS SELECT {select} FROM s {window}{more};\n"


def csv(*lines: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "a.csv").write_text("\n".join(lines) + "\n")


def parquet(times: list[int | None], **columns: list[Any]) -> Callable[[Path], object]:
    table = pa.table({"ts": pa.array(times, pa.timestamp("us")), **{k: pa.array(v) for k, v in columns.items()}})
    return lambda folder: pq.write_table(table, folder / "a.parquet")


def damaged_page(folder: Path) -> None:
    """A page that does not decode: the footer, which is all that is read at opening, is whole."""
    table = pa.table({"ts": pa.array(range(5000), pa.timestamp("us")), "a": [f"text {n}" for n in range(5000)]})
    path = folder / "a.parquet"
    pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=1000)
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(3).column(1)
    begin = chunk.data_page_offset
    data[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)


def packet(version: int = 0x45) -> bytes:
    """A UDP packet of 42 bytes in an Ethernet frame."""
    header = struct.pack(">BBHHHBBHII", version, 0, 28, 0, 0, 64, 17, 0, 0x0A000001, 0x0A000002)
    return bytes(12) + b"\x08\x00" + header + struct.pack(">HHHH", 53, 5353, 8, 0)


def damage() -> bytes:
    return b"\xff" * 16


def capture(*packets: bytes, cut: int = 0) -> Callable[[Path], object]:
    """A capture of these; what is of the size of a record's header stands as it is."""
    whole = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
    for number, data in enumerate(packets):
        header = b"" if len(data) == 16 else struct.pack("<IIII", number, 0, len(data), len(data))
        whole += header + data
    return lambda folder: (folder / "a.pcap").write_bytes(whole[: len(whole) - cut])


COLUMNS = "(ts TIMESTAMP, a BIGINT)"
CSV, PARQUET = f"{COLUMNS} FROM 'csv:a.csv'", "FROM 'parquet:a.parquet'"
WILD = [0, 1_000_000, 200_000_000_000_000_000]  # the last one is in the year 8307
FAILING = [
    Case(
        "running_sum_overflows",
        RUN,
        app(CSV, "a % 2 AS odd, sum(a) AS total", more=" GROUP BY a % 2"),
        csv(f"2026-01-01T00:00:00Z,{MOST}", "2026-01-01T00:00:01Z,2", f"2026-01-01T00:00:02Z,{MOST}"),
        1,
    ),
    Case(
        "running_wild_time_landmark",
        RUN,
        app(PARQUET, window="[WINDOW UNTIL NOW]", more=" EVERY 1 SECOND"),
        parquet(WILD),
        1,
    ),
    Case(
        "running_wild_time_landmark_watermark",
        RUN,
        app(f"{PARQUET} WATERMARK ts DELAY '1 second'", window="[WINDOW UNTIL NOW]", more=" EVERY 1 SECOND"),
        parquet([*WILD, 5]),
        1,
    ),
    Case(
        "running_wild_time_sliding", RUN, app(PARQUET, window="[RANGE '300 days' SLIDE '1 second']"), parquet(WILD), 1
    ),
    Case("running_parquet_page_damaged", RUN, app(PARQUET, "a, count(*) AS n", more=" GROUP BY a"), damaged_page, 1),
]
COMPLETING = [
    Case(
        "accounted_time_null",
        RUN,
        app(PARQUET, "a, count(*) AS n", more=" GROUP BY a"),
        parquet([None] * 5, a=[1, 2, 3, 4, 5]),
        0,
    ),
    Case(
        "accounted_csv_all_bad",
        RUN,
        app(CSV, "a, count(*) AS n", more=" GROUP BY a"),
        csv("2026-01-01T00:00:00Z,one", "yesterday,2", "2026-01-01T00:00:00Z,3.5", "2026-13-01T00:00:00Z,4", ',""'),
        0,
    ),
    Case(
        "accounted_records_of_no_form",
        RUN,
        app(CSV, "a, count(*) AS n", more=" GROUP BY a"),
        csv("2026-01-01T00:00:00Z,1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z,1,2", '2026-01-01T00:00:00Z,"1'),
        0,
    ),
    Case(
        "accounted_records_too_long",
        RUN,
        app(f"{CSV} WITH (longest_record = 64)", "a, count(*) AS n", more=" GROUP BY a"),
        csv("2026-01-01T00:00:00Z,1", "2026-01-01T00:00:00Z," + "9" * 100),
        0,
    ),
    Case(
        "accounted_json_of_no_form",
        RUN,
        app(f"{COLUMNS} FROM 'json:a.csv'", "a, count(*) AS n", more=" GROUP BY a"),
        csv('{"ts": "2026-01-01T00:00:00Z", "a": 1}', '{"ts": "2026-01-01T00:00:00Z", "a": ', "17", '{"a": "x"}'),
        0,
    ),
    Case(
        "accounted_packets",
        RUN,
        app("FROM 'pcap:a.pcap'", "src, count(*) AS n", more=" GROUP BY src"),
        capture(packet(), packet(version=0x41), packet()[:30], packet(version=0x65), damage()),
    ),
    Case(
        "accounted_capture_cut",
        RUN,
        app("FROM 'pcap:a.pcap'", "sum(length) AS bytes"),
        capture(packet(), packet(version=0x41), cut=5),
    ),
    Case(
        "accounted_beyond_the_calendar",
        RUN,
        app(PARQUET, window="[RANGE '1 day']"),
        parquet([0, 253_402_300_799_000_000, 4_000_000_000_000_000_000, -62_135_596_800_000_001]),
        0,
    ),
    Case(
        "accounted_wild_time_ahead",
        f"{RUN} --batch-rows 2",
        app(
            f"{PARQUET} WATERMARK ts DELAY '1 second' MAX AHEAD '1 hour'",
            window="[WINDOW UNTIL NOW]",
            more=" EVERY 1 SECOND",
        ),
        parquet(WILD),
        0,
    ),
]


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The command line runs in the session of the tests, and leaves it running."""
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: spark)
    monkeypatch.setattr(App, "close", lambda self, wait=True: None)
    return spark


@pytest.mark.parametrize("case", quick_or_slow(FAILING, "running_sum_overflows", "running_wild_time_landmark"))
def test_failing(
    case: Case, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arrange(case, tmp_path)
    compare(case, penstock(case.command, tmp_path, monkeypatch, capfd), tmp_path)
    assert list(tmp_path.glob("out/*/*.parquet")) == []
    assert list(tmp_path.glob("out/*/.penstock/*")) == []


@pytest.mark.parametrize(
    "case", quick_or_slow(COMPLETING, "accounted_time_null", "accounted_csv_all_bad", "accounted_packets")
)
def test_completing(
    case: Case, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arrange(case, tmp_path)
    said = penstock(case.command, tmp_path, monkeypatch, capfd)
    compare(Case(case.name, case.command, code=0), said, tmp_path)
    state = json.loads(penstock("state --checkpoint ckpt --json", tmp_path, monkeypatch, capfd).out)
    account = state["accounting"]["streams"]["s"]
    assert account["input"] == sum(count for part, count in account.items() if part != "input")


def boom(frame: Any, batch: int) -> None:
    raise ValueError("no such table\nin the database")


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        (boom, "the sink function of query 'q' failed in batch 0: ValueError: no such table"),
        pytest.param(SparkSink("nonsense"), "the sink writer of query 'q' failed in batch 0: ", marks=pytest.mark.slow),
    ],
)
def test_a_sink_that_raises(spark: SparkSession, tmp_path: Path, sink: Any, message: str) -> None:
    """The batch is committed and delivered again by the next run, once the sink is mended."""
    parquet([0, 1, 2])(tmp_path)

    def start(sink: Any) -> Any:
        app = App(spark).stream("s", f"parquet:{tmp_path}/a.parquet")
        return app.query("q", "SELECT count(*) AS n FROM s [WINDOW 1 MINUTE]", sink).start(str(tmp_path / "ckpt"))

    with pytest.raises(RunError) as caught:
        start(sink).await_end()
    assert caught.value.fact.startswith(message)
    assert "\n" not in caught.value.fact
    assert caught.value.hint == "mend it, then run again: the batch is delivered again"
