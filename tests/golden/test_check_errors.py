"""Golden errors: each check/*.sql is wrong in one way, its .txt is the whole message a user sees.

Tables are files of the folder tables/. REWRITE=1 writes the .txt files anew; review the diff.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.errors import QueryError, SourceError
from penstock.logical.query import Field
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import INT, TIMESTAMP
from penstock.runtime.expressions.known_tables import KnownTables
from penstock.sources.base import Source
from penstock.sources.registry import open_source

TABLES = Path(__file__).parent / "tables"
CASES = sorted((Path(__file__).parent / "check").glob("*.sql"))
VARIABLES = {"name": "a_rather_long_name", "folder": "it's", "window": "'5 minutes'", "bad": "'5 minuts'"}


def schema_of(uri: str, options: Mapping[str, str]) -> tuple[Field, ...]:
    if uri.startswith("missing:"):
        raise SourceError("no file 'a.pcap'", "paths are relative to where penstock is started")
    return (Field("ts", TIMESTAMP), Field("Host", INT), Field("host", INT))


def opened(uri: str, options: Mapping[str, str], fields: tuple[Field, ...] | None) -> Source:
    scheme, _, name = uri.partition(":")
    return open_source(f"{scheme}:{TABLES / name}", options, fields)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_message(case: Path) -> None:
    with pytest.raises(QueryError) as caught:
        resolve_app(case.read_text(encoding="utf-8"), case.name, schema_of, VARIABLES, KnownTables(opened))
    message = str(caught.value) + "\n"
    expected = case.with_suffix(".txt")
    if os.environ.get("REWRITE"):
        expected.write_text(message, encoding="utf-8")
    assert message == expected.read_text(encoding="utf-8")
    assert caught.value.place is not None
    assert caught.value.file == case.name


def test_no_message_without_case() -> None:
    assert {path.stem for path in CASES[0].parent.glob("*.txt")} == {case.stem for case in CASES}
