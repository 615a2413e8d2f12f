"""Kinds of tables that stand before the leaves: one module for each, found by name in `registry`.

| module | gives |
| --- | --- |
| `kind` | the type: what a planner must know of a kind of table |
| `direct` | direct-mapped tables |
| `lru` | chained tables that evict the least recently used |
| `registry` | all of them, by their names and by those of their replacements |

A new kind is one module here with its line in `registry`, and its residents with their line in
`runtime.tables.residents`.  Plans hold names only; they are data.
"""

from __future__ import annotations
