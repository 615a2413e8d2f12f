"""The same records, whatever they come in: Parquet, Arrow, CSV, JSON (plain and compressed), DataFrames and tables.

One stream of records with everything that formats differ in: NULLs, addresses of both kinds, texts with delimiters,
quotes and line ends, doubles in all their digits, times out of order. Every form of it gives the same rows and the
same accounts, those of the oracle.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.oracle.expected import Expected, expect
from support.amounts import quick_and

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtime.run.run import Run

ROWS, PARTS = 6_000, 3
PART = ROWS // PARTS
START = 1_700_000_000_000_000
DISORDER = 12_000_000
COLUMNS = "(ts TIMESTAMP, host INET, name STRING, kind INT, size BIGINT, score DOUBLE)"
HASTY, PATIENT = "1 second", "1 minute"  # the first makes records late, the second none

QUERIES = {
    "kinds": "SELECT kind, count(*) AS n, count(score) AS scored, sum(size) AS total FROM s [RANGE '10 seconds'] "
    "GROUP BY kind",
    "hosts": "SELECT host, min(name) AS low, max(name) AS high, max(score) AS best FROM s "
    "[RANGE '20 seconds' SLIDE '8 seconds'] GROUP BY host",
    "names": "SELECT name, count(*) AS n, min(host) AS low, max(host) AS high FROM s [RANGE '30 seconds'] "
    "GROUP BY name",
    "nets": "SELECT host/16 AS net, avg(score) AS mean, stddev(score) AS spread FROM s [WINDOW UNTIL NOW] "
    "GROUP BY host/16 EVERY 15 SECONDS",
    "scores": "SELECT score, count(*) AS n FROM s [RANGE '12 seconds' SLIDE '5 seconds'] WHERE score > 0 "
    "GROUP BY score ORDER BY n DESC LIMIT 7",
    "tuples": "SELECT host, name, size, score FROM s [RANGE '15 seconds'] WHERE name LIKE '%,%' AND kind = 3",
    "peaks": "SELECT max(n) AS most, count(*) AS kinds FROM kinds [RANGE '1 minute']",
}
OF_ROWS = "SELECT kind, count(*) AS n, max(name) AS high FROM s [ROWS 700 SLIDE 300] GROUP BY kind"
FILES = {
    "parquet": "parquet:{}/*.parquet",
    "arrow": "arrow:{}/*.arrow",
    "arrow.stream": "arrow:{}",
    "csv": "csv:{}/*.csv",
    "json": "json:{}/*.json",
    "json.gz": "json:{}/*.json.gz",
    "json.xz": "json:{}/*.json.xz",
    "json.zst": "json:{}/*.json.zst",
    "csv.gz": "csv:{}/*.csv.gz",
}
NAMES = (
    "plain", "", " ", "a,b", 'say "so"', '"', '""', "two\nlines", "car\r\nriage", "ends,\n", "naïve — ümläut", "日本語",
    "NUL", "null", "\\N?", "tab\there", "{\"json\": [1, 2]}", "back\\slash", "'single'", "a,b\n\"c\",d", "0", "true",
    "1e5",
)  # fmt: skip
HOSTS = (
    "10.0.0.1", "10.0.255.255", "10.1.0.1", "192.168.1.1", "255.255.255.255", "0.0.0.0", "2001:db8::1",
    "2001:db8:0:1::", "::", "::1", "::ffff:10.0.0.1", "fe80::abcd:1234", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
)  # fmt: skip


def make_records() -> pa.Table:
    """The first record is the earliest, so that landmark windows begin there also where records have no order."""
    dice = np.random.default_rng(11)
    times = START + np.arange(ROWS) * 20_000 + dice.integers(0, DISORDER, ROWS)
    times[0] = START
    timeless = dice.random(ROWS) < 0.01
    timeless[0] = False
    score = dice.normal(0, 1e3, ROWS)
    score[dice.random(ROWS) < 0.3] = 0.1
    score[:6] = [1e150, 5e-324, 1 / 3, -1e-7, 123456789.123456789, 2.0]

    def drawn(values: tuple[str, ...], missing: float) -> pa.Array:
        chosen = pa.array(dice.zipf(1.2, ROWS) % len(values), mask=dice.random(ROWS) < missing)
        return pa.array(values).take(chosen)

    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC"), mask=timeless),
            "host": drawn(HOSTS, 0.05),
            "name": drawn(NAMES, 0.1),
            "kind": pa.array(dice.integers(-2, 6, ROWS), pa.int32(), mask=dice.random(ROWS) < 0.05),
            "size": pa.array(dice.integers(-(10**12), 10**12, ROWS), mask=dice.random(ROWS) < 0.05),
            "score": pa.array(score, mask=dice.random(ROWS) < 0.05),
        }
    )


# -- the same records in files


def rows_of(part: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = part.set_column(0, "ts", part.column("ts").cast(pa.int64())).to_pylist()
    for row in rows:
        if row["ts"] is not None:
            row["ts"] = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=row["ts"])).isoformat()
    return rows


def as_csv(part: pa.Table) -> bytes:
    """Texts in quotes, NULL as an empty field."""
    lines = [",".join(part.schema.names), *(",".join(map(csv_field, row.values())) for row in rows_of(part))]
    return "".join(f"{line}\r\n" for line in lines).encode()


def csv_field(value: Any) -> str:
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)


def as_json(part: pa.Table) -> bytes:
    """Half of the texts escaped, half as they are; NULL as null or as a key that is not there."""
    lines = []
    for i, row in enumerate(rows_of(part)):
        kept = {name: value for name, value in row.items() if value is not None or i % 3}
        lines.append(json.dumps(kept, ensure_ascii=i % 2 == 0))
    return "".join(f"{line}\n" for line in lines).encode()


def as_parquet(part: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(part, sink)
    return sink.getvalue().to_pybytes()


def as_arrow(part: pa.Table, stream: bool = False) -> bytes:
    """A file, or a stream whose texts have another dictionary in each of its batches."""
    sink = pa.BufferOutputStream()
    part = part.set_column(2, "name", part.column("name").dictionary_encode()) if stream else part
    options = ipc.IpcWriteOptions(compression="lz4" if stream else None)
    with (ipc.new_stream if stream else ipc.new_file)(sink, part.schema, options=options) as writer:
        for batch in part.to_batches(max_chunksize=777):
            name = batch.column("name")
            own = name.dictionary_decode().dictionary_encode() if stream else name
            writer.write_batch(batch.set_column(2, "name", own))
    return sink.getvalue().to_pybytes()


WRITERS = {"parquet": as_parquet, "arrow": as_arrow, "csv": as_csv, "json": as_json}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


@dataclass(frozen=True)
class Records:
    """All forms of the stream, each a folder of files in its order."""

    data: pa.Table
    folder: Path

    def write(self, form: str) -> None:
        kind, _, packed = form.partition(".")
        (self.folder / form).mkdir()
        for number in range(PARTS):
            part = self.data.slice(number * PART, PART)
            path = self.folder / form / f"part-{number}.{form}"
            if form == "arrow.stream":
                path.with_suffix(".arrows").write_bytes(as_arrow(part, stream=True))
                continue
            content = WRITERS[kind](part)
            path.write_bytes(PACKERS[packed](content) if packed else content)
            if form == "parquet":  # Spark takes files in the order of their times
                os.utime(path, ns=(number * 10**9, number * 10**9))

    def text(self, form: str, delay: str) -> str:
        packed = f" WITH (cache = '{self.folder / 'cache'}')" if form.partition(".")[2] in PACKERS else ""
        source = f"'{FILES[form].format(self.folder / form)}'{packed}"
        return app_text(source, delay, {**QUERIES, "rows": OF_ROWS})


def app_text(source: str, delay: str, queries: dict[str, str], into: str = "") -> str:
    stream = f"CREATE STREAM s {COLUMNS} FROM {source} WATERMARK ts DELAY '{delay}';"
    return "\n".join([stream, *(f"CREATE QUERY {name} {into} AS {text};" for name, text in queries.items())])


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    made = Records(make_records(), tmp_path_factory.mktemp("records"))
    for form in FILES:
        made.write(form)
    return made


@pytest.fixture(scope="module")
def expected(records: Records) -> dict[str, Expected]:
    """By delay: files of equal sizes are cut into equal batches; where nothing is late, cuts do not matter."""
    return {HASTY: expected_of(records, HASTY, [PART] * PARTS), PATIENT: expected_of(records, PATIENT, [ROWS])}


def expected_of(records: Records, delay: str, batches: list[int]) -> Expected:
    app = resolve_app(app_text("'parquet:anywhere'", delay, {**QUERIES, "rows": OF_ROWS}), "app", lambda *_: ())
    return expect(app, records.data, batches)


def check(run: Run, expected: Expected, form: str, batches: list[int]) -> None:
    run.await_end()
    summary = run.summary()
    assert [batch["rows"] for batch in summary["batches"]] == batches, form
    assert_account_closes(summary)
    for name in summary["queries"]:
        found = run.results(name).toArrow().cast(expected.rows[name].schema)
        assert_same_rows(run.arrow(name), found, f"{name} of {form} without Spark")
        assert_same_rows(found, expected.rows[name], f"{name} of {form}")
        assert_same_account(summary["queries"][name]["accounting"], expected.accounts[name], f"{name} of {form}")
        assert summary["queries"][name]["rows"] == expected.rows[name].num_rows
    assert set(summary["queries"]) >= set(QUERIES)
    assert summary["malformed"] == {"ts is NULL": summary["accounting"]["malformed"]}, form


def test_the_records_are_a_test(records: Records, expected: dict[str, Expected]) -> None:
    """Otherwise the comparisons below would prove less than they say."""
    assert expected[HASTY].stream.late == 0 < expected[HASTY].accounts["kinds"].late
    assert all(account.late == 0 for account in expected[PATIENT].accounts.values())
    assert expected[PATIENT].accounts["kinds"].malformed > 10
    assert expected[PATIENT].accounts["tuples"].filtered > 1000
    assert all(rows.num_rows > 1 for rows in expected[HASTY].rows.values())
    hosts = set(expected[HASTY].rows["hosts"].column("host").to_pylist())
    assert hosts == {*HOSTS, None}
    assert set(expected[HASTY].rows["names"].column("name").to_pylist()) == {*NAMES, None}


@pytest.mark.parametrize(
    "form", quick_and(("parquet", "arrow.stream", "csv", "csv.gz", "json"), ("json.gz", "json.xz", "json.zst"))
)
def test_files(form: str, records: Records, expected: dict[str, Expected], spark: SparkSession, tmp_path: Path) -> None:
    import penstock as ps

    app = ps.App(spark).sql(records.text(form, HASTY))
    run = app.start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), batch_rows=PART)
    check(run, expected[HASTY], form, [PART] * PARTS)


def test_files_in_other_batches(
    records: Records, expected: dict[str, Expected], spark: SparkSession, tmp_path: Path
) -> None:
    """Batches across files and records that are cut anywhere."""
    import penstock as ps

    app = ps.App(spark).sql(records.text("csv", PATIENT))
    run = app.start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), batch_rows=2_347, parallelism=3)
    check(run, expected[PATIENT], "csv", [2_347, 2_347, ROWS - 2 * 2_347])


def test_a_static_frame(records: Records, expected: dict[str, Expected], spark: SparkSession, tmp_path: Path) -> None:
    import penstock as ps

    frame = spark.read.parquet(str(records.folder / "parquet"))
    app = ps.App(spark).stream("s", frame, types={"host": "INET"}, delay=PATIENT)
    check(started(app, tmp_path), expected[PATIENT], "a static DataFrame", [ROWS])


def test_a_streaming_frame(
    records: Records, expected: dict[str, Expected], spark: SparkSession, tmp_path: Path
) -> None:
    import penstock as ps

    folder = str(records.folder / "parquet")
    schema = spark.read.parquet(folder).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    app = ps.App(spark).stream("s", frame, types={"host": "INET"}, delay=HASTY)
    # The end of a streaming DataFrame is a batch of its own.
    check(started(app, tmp_path), expected[HASTY], "a streaming DataFrame", [*[PART] * PARTS, 0])


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_a_table_in_memory(
    kind: str, records: Records, expected: dict[str, Expected], spark: SparkSession, tmp_path: Path
) -> None:
    """Rows of a table have an order, and are cut into batches as those of a file."""
    import penstock as ps

    data: Any = records.data if kind == "arrow" else with_nullable(records.data)
    app = ps.App(spark).stream("s", data, types={"host": "INET"}, time="ts", delay=HASTY)
    for name, text in {**QUERIES, "rows": OF_ROWS}.items():
        app.query(name, text, sink="memory:")
    check(app.start(str(tmp_path / "ckpt"), batch_rows=PART), expected[HASTY], f"a table of {kind}", [PART] * PARTS)


def with_nullable(data: pa.Table) -> Any:
    """Integers as pandas has them where some are NULL; as floats they would be no integers."""
    import pandas as pd

    kinds = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
    return data.to_pandas(types_mapper=kinds.get)


def test_a_view(records: Records, expected: dict[str, Expected], spark: SparkSession, tmp_path: Path) -> None:
    import penstock as ps

    spark.read.parquet(str(records.folder / "parquet")).repartition(3).createOrReplaceTempView("records")
    app = ps.App(spark).sql(app_text("'spark:records'", PATIENT, QUERIES, "INTO 'memory:'"))
    check(app.start(str(tmp_path / "ckpt")), expected[PATIENT], "a view", [ROWS])


def started(app: Any, place: Path) -> Run:
    for name, text in QUERIES.items():
        app.query(name, text, sink="memory:")
    run: Run = app.start(str(place / "ckpt"))
    return run
