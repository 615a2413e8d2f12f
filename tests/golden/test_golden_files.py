"""Every golden file of the command line belongs to a case, and no two cases share one."""

from __future__ import annotations

import test_bad_checkpoints
import test_bad_commands
import test_bad_permissions
import test_bad_queries
import test_bad_records
import test_bad_settings
import test_bad_sources
import test_bad_tables
from commands import GOLDEN


def test_no_message_without_case() -> None:
    cases = [
        *test_bad_sources.CASES,
        *test_bad_commands.CASES,
        *test_bad_commands.NO_SESSION,
        test_bad_commands.NO_PICTURE,
        *test_bad_settings.CASES,
        *test_bad_checkpoints.CASES,
        *test_bad_checkpoints.READING,
        *test_bad_permissions.CASES,
        *test_bad_queries.CASES,
        *test_bad_records.FAILING,
        *test_bad_records.COMPLETING,
        *test_bad_tables.CASES,
        *test_bad_tables.CHANGED,
    ]
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(names)
