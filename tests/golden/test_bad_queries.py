"""One-off queries that cannot work; cli/query_*.txt are the whole messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Case, compare, penstock

CSV = "ts,src,size\n2026-01-01 00:00:00,10.0.0.1,5\n"


def files(folder: Path) -> None:
    (folder / "x.csv").write_text(CSV)
    (folder / "plain.csv").write_text("a,b\n1,2\n")
    (folder / "times.csv").write_text("begin,finish\n2026-01-01 00:00:00,2026-01-01 00:00:01\n")
    (folder / "there").mkdir()


def asked(name: str, text: str, options: str = "") -> Case:
    return Case(f"query_{name}", f'query "{text}"{options}', arrange=files)


CASES = [
    Case("query_none", "query"),
    asked("empty", ";"),
    asked("no_file", "SELECT count(*) AS n FROM 'nothere.pcap'"),
    asked("no_kind", "SELECT count(*) AS n FROM 'notes.txt'"),
    asked("no_quotes", "SELECT count(*) AS n FROM x"),
    asked("no_quotes_and_suffix", "SELECT count(*) AS n FROM x.csv"),
    asked("window_behind", "SELECT src, count(*) AS n FROM 'x.csv' GROUP BY src [RANGE '1 minute']"),
    asked("window_without_unit", "SELECT count(*) AS n FROM 'x.csv' [RANGE 10]"),
    asked("column", "SELECT scr, count(*) AS n FROM 'x.csv' GROUP BY scr"),
    asked("no_time", "SELECT count(*) AS n FROM 'plain.csv' [RANGE '1 minute']"),
    asked("two_times", "SELECT count(*) AS n FROM 'times.csv' [RANGE '1 minute']"),
    asked("no_time_below", "SELECT max(n) AS m FROM (SELECT count(*) AS n FROM 'x.csv' GROUP BY src) EVERY 1 MINUTE"),
    asked("second_is_wrong", "SELECT count(*) AS n FROM 'x.csv'; SELECT count(* FROM 'x.csv'"),
    asked("format", "SELECT count(*) AS n FROM 'x.csv'", " --format xml"),
    asked("no_suffix", "SELECT count(*) AS n FROM 'x.csv'", " -o result"),
    asked("into_folder", "SELECT count(*) AS n FROM 'x.csv'", " -o there --format csv"),
    asked("into_file", "SELECT count(*) AS n FROM 'x.csv'; SELECT count(*) AS m FROM 'x.csv'", " -o x.csv"),
    asked("no_such_folder", "SELECT count(*) AS n FROM 'x.csv'", " -o nowhere/x.csv"),
    Case("query_columns_of_nothing", "query --columns nothere.pcap"),
    Case("query_columns_of_no_kind", "query --columns notes.txt"),
    Case("run_of_data", "run x.csv", arrange=files),
    Case("check_of_data", "check x.csv", arrange=files),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case.arrange(tmp_path)
    compare(case, penstock(case.command, tmp_path, monkeypatch, capsys), tmp_path)
