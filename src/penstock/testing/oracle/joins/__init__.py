"""The oracle of joins: what a query over several streams and tables must give at every instant.

| module | gives |
| --- | --- |
| `terms`, `spec` | what is asked: expressions, sides, windows; without the engine's resolver |
| `script` | a spec as the text of an app |
| `watermarks`, `bags` | its time: WM of a query, what a side holds at every instant |
| `sides`, `tables` | its records: values, verdicts, which rows of a table belong to which |
| `answers`, `expected` | its output: rows by DuckDB, accounts by alias; all of it: `expect_joins` |
"""

from __future__ import annotations

from penstock.testing.oracle.joins.expected import ExpectedApp, ExpectedJoin, expect_joins

__all__ = ["ExpectedApp", "ExpectedJoin", "expect_joins"]
