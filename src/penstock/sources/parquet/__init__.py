"""Parquet files as streams.

| module | what it does |
| --- | --- |
| `source` | opens a source; reads splits |
| `footers` | reads and checks the footers of files |
| `write` | writes the records of any source to a Parquet file |
"""

from __future__ import annotations
