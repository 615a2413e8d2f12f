"""Blocks of docs/python.md that need no Spark run as they stand; `test_documents` runs the whole page."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n((?s:.*?))^```", PAGE, re.MULTILINE)


def test_what_needs_no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tables, joined, columns = (text for text in BLOCKS if '= ps.App(master="process")' in text)
    names: dict[str, Any] = {}
    exec(compile(tables, "docs/python.md", "exec"), names)
    assert len(names["nets"]) == 7 * 10
    assert names["nets"]["bytes"].sum() == 60_000 * 59_999 // 2
    exec(compile(joined, "docs/python.md", "exec"), names)
    hosts = Counter((n % 9, n % 250) for n in range(60_000))
    expected = Counter[str | None]()
    for (network, host), visits in hosts.items():
        inside = {3: "reading room" if host >= 128 else "library", 8: None}
        expected[inside.get(network, "campus")] += visits
    found = names["by_owner"].groupby("name", dropna=False)["visits"].sum()
    assert {None if pd.isna(name) else name: visits for name, visits in found.items()} == expected
    assert len(names["by_owner"]) == 10 * 4
    exec(compile(columns, "docs/python.md", "exec"), {})
