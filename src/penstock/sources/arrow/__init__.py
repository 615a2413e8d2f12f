"""Arrow as streams: IPC files, and tables in memory.

| module | what it does |
| --- | --- |
| `messages` | finds the record batches of a file, and reads them |
| `source` | opens a source of files; reads splits |
| `kept` | how a checkpoint keeps tables, by their content |
| `table` | tables in memory |
"""

from __future__ import annotations
