"""Sizes, options from the environment, and what `check` must refuse as `run` does; cli/*.txt are the whole messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Case, arrange, compare, penstock
from test_bad_commands import APP, STREAM, into

UNREAD = STREAM.replace("STREAM s", "STREAM other")
BOTH = into("csv:both") + into("csv:both").replace(STREAM, "").replace("QUERY q", "QUERY r")

CASES = [
    Case("size_of_no_unit", "run app.sql --memory 12parrots", APP),
    Case("size_of_half_a_byte", "run app.sql --task-memory 0.3KiB", APP),
    Case("count_of_no_unit", "generate flows -o x.parquet --rows 5GiB"),
    Case("generate_of_no_format", "generate flows -o x.arrow"),
    Case("generate_packed_parquet", "generate flows -o x.parquet.gz"),
    Case("overload_unknown", "run app.sql --overload triaged", APP),
    # `check` refuses what `run` refuses before it starts.
    Case("check_sink_unknown", "check app.sql", into("kafka:topic")),
    Case("check_sink_shared", "check app.sql", BOTH),
    Case("check_console_option", "check app.sql", into("console:?lines=5")),
    Case("check_needs_spark", "check app.sql --master process", into("memory:shown")),
    Case("check_until_stopped", "check app.sql --until stopped", APP.replace(" WATERMARK ts DELAY '1 second'", "")),
    Case("check_until_unknown", "check app.sql --until tomorrow", APP),
    Case("check_output_on_s3", "check app.sql --output s3://bucket/out", APP),
    Case("check_unused", "check app.sql --set trace=x --set row=5", UNREAD + APP.replace("1000", "${rows}")),
    # What is not used is said, and does no harm.
    Case(
        "unused_set_and_stream",
        "check app.sql --set row=5 --set rows=5",
        UNREAD + APP.replace("1000", "${rows}"),
        code=0,
    ),
]
ENVIRONMENT = {
    "environment_size": ("PENSTOCK_MEMORY", "lots", "explain app.sql"),
    "environment_plan": ("PENSTOCK_PLAN", "best", "explain app.sql"),
    "environment_flag": ("PENSTOCK_QUIET", "perhaps", "run app.sql"),
    "environment_until": ("PENSTOCK_UNTIL", "tomorrow", "check app.sql"),
}
CASES += [Case(name, command, APP) for name, (_, _, command) in ENVIRONMENT.items()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arrange(case, tmp_path)
    if case.name in ENVIRONMENT:
        name, value, _ = ENVIRONMENT[case.name]
        monkeypatch.setenv(name, value)
    compare(case, penstock(case.command, tmp_path, monkeypatch, capfd), tmp_path)
    assert not (tmp_path / "penstock-out").exists()


def test_the_command_line_goes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arrange(Case("right", "", APP.replace("1000", "${rows}")), tmp_path)
    monkeypatch.setenv("PENSTOCK_UNTIL", "tomorrow")
    monkeypatch.setenv("PENSTOCK_SET", "rows=5")
    monkeypatch.setenv("PENSTOCK_JSON", "1")
    said = penstock("check app.sql --until end", tmp_path, monkeypatch, capfd)
    assert (said.code, said.out, said.err) == (0, '{"stream": "s", "streams": ["s"], "queries": ["q"]}\n', "")
