"""Files of text as streams: CSV, and lines of JSON.

| module | what it does |
| --- | --- |
| `csv`, `json` | open a source; say what a record is |
| `csv_head` | what the first lines of CSV say: columns, or why none can be told |
| `source` | the source itself: counts files, reads splits |
| `blocks` | walks a file record by record |
| `columns` | turns spans of text into Arrow columns |
| `infer` | guesses the types of columns that are not declared |
| `options` | WITH options that both formats share |
"""

from __future__ import annotations
