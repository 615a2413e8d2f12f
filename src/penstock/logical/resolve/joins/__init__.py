"""Several inputs in FROM: streams joined by window, and tables. `join.resolve_join` is the way in.

| module | resolves |
| --- | --- |
| `columns` | names of columns, which may be of any input |
| `windows` | the windows of all streams, and the instants at which they give results |
| `conditions` | WHERE and ON, split into what each stream, each key and each table is asked |
| `tables` | which rows of a table belong to a record: found by each record itself where there is one, else joined |
| `subqueries` | EXISTS and IN, taken out of WHERE, and what they may say |
| `questions` | what they ask: tests of rows at every instant, or filters of records |
| `join` | all of it |

Inside a join a column is called by its input and its name, `A.price`. Sides have expressions of their own columns.
"""

from __future__ import annotations
