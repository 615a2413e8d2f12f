"""From stored relations to results: which windows close, merged from panes, rolled up, finished, ordered, counted.

| module | does |
| --- | --- |
| `due` | which windows close |
| `items` | these cut into items that fit a task's memory |
| `together` | what queries that close together have in common; a room of its own |
| `item` | merges an item, and finishes its queries one after the other |
| `windows` | the rows of an item's windows, merged from panes |
| `inputs` | the rows that a merge is made of |
| `merge` | partial aggregates into groups |
| `words` | strings and IPv6 addresses of what is merged |
| `shares` | the rows that a pass takes |
| `coarse` | the same groups by 8, 64, 512 … panes |
| `once` | the rows that an item reads, once for all that is made of them |
| `prefixes` | coarser addresses of finer ones |
| `rolling` | many queries from the same rows without hashing; a room of its own |
| `results` | groups into rows of the result; a room of its own |
| `details` | what must know the values of a group; a room of its own |
| `join` | joins; a room of its own |
| `counting` | what joins hold key by key, for the choice of their plans |

May touch `relations`, `state.segments`, `runtime.expressions` and `runtime.tables`; knows neither streams of records
nor an engine.
"""

from __future__ import annotations
