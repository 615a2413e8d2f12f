"""Relations: what is stored, and how queries are computed from it when their windows close.

| module | has |
| --- | --- |
| `component` | the numbers that keys are made of |
| `layout` | where components stand in packed words |
| `relation` | relations: which records, grouped by what, with which states |
| `sides` | which sides of joins are early |
| `closing` | how a query's groups are made of a relation: `Finish`, `RollUp` |
| `storing` | which relations are stored, and how each query closes |
| `storage` | what versions have stored, and which relation each query reads of it |

    queries ──► storing ──► relations, closings ──► sharing (tables before them) ──► runtime (tasks, merges)

May touch `logical` and `aggregates`. It stands below planning, so that tables, segments and plans mean the same by a
relation.
"""

from __future__ import annotations
