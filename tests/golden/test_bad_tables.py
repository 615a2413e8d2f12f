"""Tables that cannot be joined with, as the command line reports them: cli/*.txt are the whole messages."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Case, NoSpark, arrange, compare, penstock

from penstock.app.api import App

SECONDS, BATCH = 300, 100
STREAM = """CREATE STREAM s (ts TIMESTAMP, src INET, a BIGINT, word STRING) FROM 'parquet:data'
  WATERMARK ts DELAY '1 second';
"""
QUERY = """CREATE QUERY q AS
  SELECT name, count(*) AS n
  FROM s [WINDOW 1 MINUTE], owners
  WHERE src >= low AND src < high GROUP BY name;
"""
BY_NUMBER = """CREATE QUERY q AS
  SELECT name, count(*) AS n
  FROM s [WINDOW 1 MINUTE], owners
  WHERE s.a = owners.a GROUP BY name;
"""
COLUMNS = "(low INET, high INET, name STRING)"
ROWS = "low,high,name\n10.0.0.0,10.0.1.0,one.example\n10.0.1.0,10.0.2.0,two.example\n"
CHECK, RUN = "check app.sql", "run app.sql --quiet --master process --checkpoint ckpt --output out"


def table(source: str = "csv:owners.csv", columns: str = COLUMNS, options: str = "") -> str:
    words = ["CREATE TABLE owners", columns, f"FROM '{source}'", options and f"WITH ({options})"]
    return " ".join(filter(None, words)) + ";\n"


def app(declared: str, query: str = QUERY) -> str:
    return STREAM + declared + query


def text(content: str | bytes, name: str = "owners.csv") -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def parquet(rows: pa.Table) -> Callable[[Path], None]:
    return lambda folder: pq.write_table(rows, folder / "owners.parquet")


NAMES = pa.table({"a": ["1", "2"], "name": ["one", "two"]})
CASES = [
    # Where nothing is, or nothing that can be read.
    Case("table_missing", CHECK, app(table("csv:none.csv"))),
    Case("table_missing_of_columns_unknown", CHECK, app(table("parquet:none.parquet", ""))),
    Case("table_scheme_missing", CHECK, app(table("owners.csv")), text(ROWS)),
    Case("table_is_csv", CHECK, app(table("parquet:owners.csv", "")), text(ROWS)),
    Case("table_empty", CHECK, app(table()), text("")),
    Case("table_header_only", CHECK, app(table()), text("low,high,name\n")),
    Case("table_parquet_empty", CHECK, app(table("parquet:owners.parquet", ""), BY_NUMBER), parquet(NAMES[:0])),
    Case("table_option_unknown", CHECK, app(table(options="matches = 'longest'")), text(ROWS)),
    # Columns and types.
    Case("table_column_missing", CHECK, app(table()), text(ROWS.replace("name", "owner"))),
    Case("table_bad_address", CHECK, app(table()), text(ROWS.replace("10.0.2.0", "10.0.2.300"))),
    Case("table_prefix_as_address", CHECK, app(table()), text(ROWS.replace("10.0.1.0,10", "10.0.1.0/24,10"))),
    Case(
        "table_bad_number", CHECK, app(table(columns="(a INT, name STRING)"), BY_NUMBER), text("a,name\n1,x\ntwo,y\n")
    ),
    Case(
        "table_number_too_large",
        CHECK,
        app(table(columns="(a TINYINT, name STRING)"), BY_NUMBER),
        text("a,name\n1,x\n300,y\n"),
    ),
    Case("table_too_few_fields", CHECK, app(table()), text(ROWS + "10.0.9.0\n")),
    Case("table_not_the_types", CHECK, app(table("parquet:owners.parquet", "(a INT)"), BY_NUMBER), parquet(NAMES)),
    Case("table_key_of_another_type", CHECK, app(table("parquet:owners.parquet", ""), BY_NUMBER), parquet(NAMES)),
    # Ranges.
    Case("table_range_inverted", CHECK, app(table()), text(ROWS + "10.9.0.0,10.8.0.0,three.example\n")),
    Case(
        "table_longest_of_texts",
        CHECK,
        app(
            table(columns="(low STRING, high STRING, name STRING)", options="match = 'longest'"),
            QUERY.replace("src", "word"),
        ),
        text(ROWS),
    ),
]
# On the checkpoint of a run that was stopped with its windows open.
CHANGED = [
    Case("checkpoint_table_changed", RUN, None, text(ROWS.replace("two.example", "three.example"))),
    Case("checkpoint_table_gone", RUN, None, lambda folder: (folder / "owners.csv").unlink()),
    Case("checkpoint_table_of_other_columns", RUN, app(table(columns="(low INET, high INET, name STRING, a INT)")),
         text(ROWS.replace("name", "name,a").replace("example", "example,1"))),
    Case("checkpoint_table_matched_otherwise", RUN, app(table(options="match = 'longest'"))),
]  # fmt: skip


def data(folder: Path) -> None:
    times = pa.array([number * 1_000_000 for number in range(SECONDS)], pa.timestamp("us"))
    hosts = pa.array([f"10.0.{number % 3}.{number % 7}" for number in range(SECONDS)])
    rows = pa.table({"ts": times, "src": hosts, "a": pa.array(range(SECONDS)), "word": hosts})
    (folder / "data").mkdir(parents=True)
    pq.write_table(rows, folder / "data" / "a.parquet", row_group_size=BATCH)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: NoSpark())
    data(tmp_path)
    arrange(case, tmp_path)
    compare(case, penstock(case.command, tmp_path, monkeypatch, capfd), tmp_path)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped") / "run"
    data(folder)
    (folder / "app.sql").write_text(app(table()))
    (folder / "owners.csv").write_text(ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run = App(master="process").sql(app(table())).start("ckpt", output="out", batch_rows=BATCH, until="stopped")
        while run.progress()["rows"] < SECONDS:
            assert not run.await_end(1)
        run.stop()
    return folder


@pytest.mark.parametrize("case", CHANGED, ids=lambda case: case.name)
def test_changed(
    case: Case,
    stopped: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    results = sorted((folder / "out").rglob("*"))
    arrange(case, folder)
    compare(case, penstock(case.command, folder, monkeypatch, capfd), folder)
    assert sorted((folder / "out").rglob("*")) == results
