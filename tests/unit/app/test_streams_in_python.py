"""`App.stream` on tables in memory, types that add to what a source knows, results without Spark, notebooks."""

from __future__ import annotations

import pickle
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.logical.types import INET

ROWS = 4_000
QUERY = "SELECT host, kind, count(*) AS n, max(score) AS best FROM t [RANGE '10 seconds'] GROUP BY host, kind"
LAST = "SELECT n, count(*) AS rows FROM t [ROWS 1000] GROUP BY n"


def records(rows: int = ROWS) -> pd.DataFrame:
    dice = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "ts": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(rows) * 10 + dice.integers(0, 50, rows), "ms"),
            "host": np.array(["10.0.0.1", "10.0.0.2", "::1"])[dice.integers(0, 3, rows)],
            "kind": pd.Categorical(np.array(["a", "b"])[dice.integers(0, 2, rows)]),
            "n": dice.integers(0, 3, rows),
            "score": np.where(dice.random(rows) < 0.1, np.nan, dice.random(rows)),
        }
    )


def app_on(source: Any, **options: Any) -> ps.App:
    app = ps.App(master="process").stream("t", source, types={"host": "INET"}, delay="1 second", **options)
    return app.query("q", QUERY, sink="memory:").query("last", LAST, sink="memory:")


def ran(app: ps.App, place: Path, **settings: Any) -> ps.Run:
    run = app.start(str(place), **{"parallelism": 1, "batch_rows": 900, **settings})
    run.await_end()
    return run


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def test_a_table_is_a_stream_like_a_file_of_it(tmp_path: Path) -> None:
    frame = records()
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    expected = ran(app_on(f"parquet:{tmp_path / 't.parquet'}"), tmp_path / "file")
    table = pa.Table.from_pandas(frame)
    for number, given in enumerate((frame, frame.set_index("ts"), table, table.to_reader(700))):
        run = ran(app_on(given), tmp_path / str(number), parallelism=1 + number % 2)
        assert run.summary()["accounting"] == expected.summary()["accounting"]
        for name in ("q", "last"):
            assert sorted_rows(run.arrow(name)) == sorted_rows(expected.arrow(name))
        assert run.arrow("q").num_rows > 20


def test_a_table_is_kept_for_the_next_run(tmp_path: Path) -> None:
    """Stopped in the middle, and gone on with by another app that has the same table, in other pieces."""
    frame = records()
    whole = ran(app_on(frame), tmp_path / "whole")
    app = app_on(frame)
    run = app.start(str(tmp_path / "ckpt"), parallelism=1, batch_rows=1)
    while run.progress()["batch"] < 2:
        run.await_end(1)
    run.stop()
    assert 3 <= run.progress()["rows"] < ROWS
    pieces = pa.concat_tables([pa.Table.from_pandas(frame[:10]), pa.Table.from_pandas(frame[10:])])
    again = ran(app_on(pieces), tmp_path / "ckpt")
    for name in ("q", "last"):
        assert sorted_rows(again.arrow(name)) == sorted_rows(whole.arrow(name))
    changed = frame.copy()
    changed.loc[ROWS - 1, "n"] += 1
    with pytest.raises(ps.StateError, match="the source of stream 't' differs from the one that checkpoint"):
        app_on(changed).start(str(tmp_path / "ckpt"))


def test_a_table_needs_no_checkpoint_and_can_be_explained(tmp_path: Path) -> None:
    app = app_on(records())
    assert "t from table:t, 4,000 rows" in app.explain()
    run = app.start(parallelism=1)
    run.await_end()
    assert run.arrow("q").num_rows > 20
    assert "measured" in app.explain(analyze=True, parallelism=1)


def test_what_cannot_be_a_stream() -> None:
    app = ps.App(master="process")
    for given, kind in (([1], "list"), (pd.Series([1]), "pandas.core.series.Series"), (None, "NoneType")):
        with pytest.raises(ps.SourceError, match=f"stream 't' cannot be read from a {kind}"):
            app.stream("t", given)
    with pytest.raises(ps.ConfigError, match="stream 't' has options, but no address"):
        app.stream("t", records(3), options={"header": "true"})
    with pytest.raises(ps.QueryError, match="stream 't' has no TIMESTAMP column"):
        app.stream("t", records(3).drop(columns="ts"))
    with pytest.raises(ps.QueryError, match="unknown source 'table:nothing'"):
        app.stream("t", "table:nothing")


# -- types


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow", "table"])
def test_types_add_to_what_the_source_knows(tmp_path: Path, form: str) -> None:
    frame = records(50)
    path, source = tmp_path / f"t.{form}", f"{form}:{tmp_path / f't.{form}'}"
    given: Any = source
    match form:
        case "csv":
            frame.to_csv(path, index=False)
        case "json":
            frame.to_json(path, orient="records", lines=True, date_format="iso")
        case "parquet":
            frame.to_parquet(path)
        case "arrow":
            frame.to_feather(path)
        case "table":
            given = frame
    app = ps.App(master="process").stream("t", given, types={"host": "inet", "n": "DOUBLE"})
    fields = {field.name: str(field.type) for field in app._streams["t"].fields}
    assert fields == {"ts": "TIMESTAMP", "host": "INET", "kind": "STRING", "n": "DOUBLE", "score": "DOUBLE"}
    for wrong, message in (
        ({"hots": "INET"}, "types= names column 'hots', which stream 'u' does not have\n  hint: did you mean 'host'?"),
        ({"host": "INETT"}, "unknown type 'INETT' of column 'host'"),
        ({"host": 4}, "unknown type '4' of column 'host'"),
    ):
        with pytest.raises(ps.QueryError) as error:
            ps.App(master="process").stream("u", given, types=wrong)
        assert str(error.value).startswith(message)


def test_fields_say_all_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("2026-01-01T00:00:00Z,10.0.0.1\n")
    app = ps.App(master="process").stream(
        "t", f"csv:{tmp_path / 't.csv'}", fields={"ts": "TIMESTAMP", "host": "INET"}, options={"header": "false"}
    )
    assert app._streams["t"].fields[1].type == INET
    with pytest.raises(ps.QueryError, match="unknown type 'NONE'"):
        app.stream("u", "csv:nowhere", fields={"ts": "NONE"})


# -- results


def test_results_are_in_the_order_of_windows_and_have_their_schema(tmp_path: Path) -> None:
    app = app_on(records())
    app.query("empty", "SELECT n, host/24 AS net FROM t [RANGE '10 seconds'] WHERE n > 99", sink="memory:")
    app.query("holes", "SELECT host, max(n) FILTER (WHERE score > 2) AS most FROM t [RANGE '20 seconds'] GROUP BY host",
              sink=f"json:{tmp_path / 'holes'}")  # fmt: skip
    app.query("gone", "SELECT count(*) AS n FROM t [RANGE '20 seconds']", sink="discard:")
    run = ran(app, tmp_path / "ckpt")
    for name in ("q", "last", "holes"):
        windows = run.arrow(name).select(["window_start", "window_end"]).to_pylist()
        assert windows == sorted(windows, key=lambda row: (row["window_start"], row["window_end"]))
        assert len({str(row) for row in windows}) > 1
    empty = run.arrow("empty")
    assert (empty.num_rows, empty.schema.names) == (0, ["n", "net", "window_start", "window_end"])
    assert [str(kind) for kind in empty.schema.types[:2]] == ["int64", "string"]
    assert str(run.pandas("empty").dtypes["window_end"]) == "datetime64[us, UTC]"
    frame = run.pandas("q")
    assert (len(frame), str(frame.dtypes["n"])) == (run.arrow("q").num_rows, "int64")
    assert frame["n"].sum() == ROWS
    holes = run.pandas("holes")
    assert str(holes.dtypes["most"]) == "Int64"
    assert holes["most"].isna().all()
    with pytest.raises(ps.ConfigError, match="the results of query 'gone' go to discard: and are not kept"):
        run.arrow("gone")
    with pytest.raises(ps.ConfigError, match=r"as a DataFrame need Spark.*\n.*run\.arrow or run\.pandas"):
        run.results("q")
    with pytest.raises(ps.ConfigError, match="there is no query 'nothing'"):
        run.pandas("nothing")


# -- notebooks


class Balanced(HTMLParser):
    """Sees that what is opened is closed, and gathers the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def test_an_app_a_plan_a_run_and_its_account_in_a_notebook(tmp_path: Path) -> None:
    frame = records().rename(columns={"kind": "<script>"})
    app = ps.App(master="process").stream("t", frame, delay="1 second")
    app.query("q", "SELECT host, count(*) AS n FROM t [RANGE '10 seconds'] WHERE host <> '<b>&' GROUP BY host",
              sink="memory:")  # fmt: skip
    plan = app.explain()
    assert pickle.loads(pickle.dumps(plan)) == plan == str(plan)
    run = ran(app, tmp_path / "<ckpt>")
    assert repr(app) == "<penstock.App: 1 streams, 1 queries>"
    assert repr(run) == f"<penstock.Run: ended, checkpoint {tmp_path / '<ckpt>'}>"
    for shown, words in (
        (app, ("table:t", "ts TIMESTAMP", "<script> STRING", "10 s", "host <> '<b>&'", "memory:")),
        (plan, ("plan of stream t", "exact", "q")),
        (run, ("ended", "4,000", "account", str(tmp_path / "<ckpt>"))),
        (run.summary(), ("input", "exact", "(stream)", "4,000")),
    ):
        page = Balanced(shown._repr_html_())
        assert page.seen <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "div"}
        for word in words:
            assert word in page.text
    assert app.explain(analyze=True, parallelism=1)._repr_html_().count("as measured") == 1
