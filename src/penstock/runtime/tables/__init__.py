"""The tables of a task.

| module | has |
| --- | --- |
| `chunk` | records with packed keys, or partial aggregates; how they are folded |
| `rows` | the row format: key words, count(*), states |
| `residents/` | the entries of a table, and how a newcomer finds room |
| `table` | a table that evicts |
| `leaf`, `append` | the last table of a relation: each group once, or a row for everything that comes |
| `forest` | all of them, and who feeds whom |

May touch `relations`, `sharing`, `aggregates`, `kernels` and `state`; knows neither Arrow nor files.
"""

from __future__ import annotations
