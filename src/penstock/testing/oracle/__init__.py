"""The oracle: the rows and accounts that an app must produce, by DuckDB and plain Python.

| module | gives |
| --- | --- |
| `expected` | all of it: `expect` |
| `columns`, `addresses`, `attributes` | its input: typed values, addresses, what queries compute of a record |
| `timeline`, `membership` | its time: batches and watermarks, windows by their definition |
| `answers`, `sums`, `database`, `duck`, `duck_functions` | its output: groups, exact sums, SQL |
| `joins` | the same for joins of streams and tables: `expect_joins` |
"""

from __future__ import annotations

from penstock.testing.oracle.expected import expect

__all__ = ["expect"]
