"""Roll-ups of many queries from the same rows, without hashing.

    rows (stored, or merged) ──► codes of each attribute ──► in order of window and lead ──► groups of each query

| module | does |
| --- | --- |
| `coding` | numbers from a column: dense ones by rank, others by a table; keys of several attributes |
| `attributes` | the codes of grouping attributes, prefixes of others among them |
| `rolling` | the groups of a query, and the columns of rows in an order that queries share |
| `rollup` | the closing of a query that is rolled up: from the source, or from what was made of it |
| `items` | work of queries that are all rolled up, shared out to tasks |
| `dealing` | the queries of windows that are too few for all tasks, shared out |

`kernels.tables.rolling` has the loops.
"""

from __future__ import annotations
