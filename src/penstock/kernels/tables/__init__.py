"""Compiled loops over packed keys and the rows of tables.

| module | does |
| --- | --- |
| `pack` | puts components into key words, and cuts the key of a relation out of them |
| `probe` | finds or makes rows: exact and direct-mapped tables |
| `lru` | the same in tables that evict the least recently used |
| `fold` | folds values and partial states into rows |
| `merge` | numbers the groups of many runs, cell by cell |
| `joining` | combinations of rows with equal keys, and states that stand for several records |
| `living` | the same for rows that live at several instants, without writing combinations down |
| `order` | canonical hashes, and the order of groups in a segment |
| `columns` | packs columns of a segment into few bytes, and back |
| `survey` | counts groups in a sample |

May touch the root of `kernels`.
"""

from __future__ import annotations
