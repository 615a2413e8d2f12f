"""The examples of docs/testing.md run as they stand, one after the other, in a folder of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.sources.generate.source import open_generate
from penstock.sources.parquet.write import write_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"^```python *(.*)\n((?s:.*?))^```", re.MULTILINE)
GENERATE = re.compile(r"^penstock generate bursty -o trace.parquet --rows (\d+) --option rate=(\d+)$", re.MULTILINE)


def blocks(kind: str) -> list[str]:
    return [text for found, text in PYTHON.findall(PAGE) if found == kind]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the page says there is."""
    monkeypatch.chdir(tmp_path)
    Path("app.sql").write_text(re.findall(r"^```sql app\n((?s:.*?))^```", PAGE, re.MULTILINE)[0])
    ((rows, rate),) = GENERATE.findall(PAGE)
    write_parquet(open_generate("bursty", {"rows": rows, "rate": rate}), Path("trace.parquet"))
    return tmp_path


def test_the_oracle(place: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.runtime.spark.session.build_session", lambda *_: spark)
    monkeypatch.setattr("penstock.app.api.App.close", lambda self, wait=True: None)
    (text,) = blocks("")
    names: dict[str, Any] = {}
    exec(compile(text, "docs/testing.md", "exec"), names)
    assert all(rows.num_rows > 10 for rows in names["expected"].rows.values())


@pytest.mark.slow
def test_the_faults(place: Path) -> None:
    names: dict[str, Any] = {}
    for text in blocks("slow"):
        exec(compile(text, "docs/testing.md", "exec"), names)
    assert names["done"].landed >= 4
