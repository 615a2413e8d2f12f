"""Mistakes of the first hour: each golden message says what is wrong, where, and what to do.

The messages themselves are compared by the tests beside this one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent
# Of the command line: paths, files, addresses.
COMMANDS = (
    "app_missing", "app_is_a_folder", "run_of_data", "set_missing", "source_file_missing", "source_scheme_missing",
    "source_folder_of_others", "source_kafka", "source_on_the_web", "pcap_not_a_capture", "parquet_is_csv",
    "parquet_column_of_lists", "csv_header_misspelt", "csv_header_missing", "csv_semicolons",
    "csv_times_of_another_form", "output_of_another_run", "option_unknown", "table_missing", "table_empty",
    "table_bad_address", "table_scheme_missing", "table_range_inverted", "checkpoint_table_changed",
)  # fmt: skip
# Of an app's text: shown with the line, and carets under the words.
TEXTS = (
    "missing_semicolon", "unfinished_string", "text_in_double_quotes", "typographic_quotes", "backticks",
    "from_quoted_double", "reserved_column", "select_without_query", "no_window", "window_of_spark", "window_of_flink",
    "unknown_unit", "unknown_stream", "where_unknown_column", "where_quoted_case", "unknown_function",
    "count_without_parentheses", "select_not_grouped", "where_aggregate", "where_alias", "where_quoted_number",
    "where_string_int", "where_bad_address", "prefix_of_text", "count_distinct", "variable_unset",
    "join_without_equality", "join_without_on", "join_stream_without_window", "join_window_of_table", "join_ambiguous",
    "join_unknown_column", "join_unknown_table", "join_same_name", "join_left_stream", "join_bare_ranges_disagree",
    "table_read", "table_without_source", "table_turned",
)  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str) -> None:
    message = (GOLDEN / "cli" / f"{name}.txt").read_text(encoding="utf-8")
    what, hint = re.search(r"(?m)^error: (.+)", message), re.search(r"(?m)^  hint: (.+)", message)
    assert message.splitlines()[1] in ("exit 1", "exit 2")
    assert what is not None
    assert hint is not None
    assert re.search(r"'|--|TMP|\w\.\w| \.", what[1])  # the file, folder, option or word in question


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    message = (GOLDEN / "check" / f"{name}.txt").read_text(encoding="utf-8")
    place, line, carets, hint = message.splitlines()
    assert re.match(rf"{name}\.sql:\d+:\d+: .", place)
    assert re.match(r"  \d+ \| .", line)
    assert re.match(r"    +\| *\^+$", carets)
    assert re.match(r"  hint: .", hint)
