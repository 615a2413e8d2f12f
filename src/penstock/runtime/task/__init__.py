"""The task: the records of one split become one segment.

| module | does |
| --- | --- |
| `task` | has the loop, and decides when groups are written |
| `gathering` | makes larger batches of small ones |
| `columns` | turns batches into records (`arrow`, `codes`), judges times (`times`), computes columns |
| `selection` | decides what becomes of each record for each query, and keeps the account |
| `keys` | lays out and packs the components of keys |
| `sampling` | leaves samples for the planner |
| `worker_cache` | remembers figures of the worker's last tasks |

Packed chunks then go into the forest of tables (`runtime.tables.forest`). Nothing below calls back into this package.
"""

from __future__ import annotations
