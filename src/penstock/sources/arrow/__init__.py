"""Arrow as streams: IPC files, and tables in memory.

| module | what it does |
| --- | --- |
| `messages` | finds the record batches of a file, and reads them |
| `source` | opens a source of files; reads splits |
| `table` | tables in memory, and how a checkpoint keeps them |
"""

from __future__ import annotations
