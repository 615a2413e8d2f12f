"""Joins: the groups of several streams at an instant, put together when a window closes.

| module | does |
| --- | --- |
| `reading` | what a join reads, and which of its instants close |
| `items` | instants cut into items that fit a task |
| `named` | groups of a side under the names that the query calls them by |
| `sides` | merges the panes of each side; numbers the keys that rows are joined by |
| `last`, `floor` | sides that are the last records; how far back those reach |
| `fixed` | rows of a table as a side |
| `linked` | combinations of streams that have no key in common, or more than that |
| `semi` | EXISTS and IN: rows that stay or go by what another stream has |
| `pairs` | combinations of rows, and the condition that is judged on them |
| `combined` | combinations into groups, with their states |
| `computed` | what is computed of columns of several sides |
| `living` | two streams with rows that live at several instants: the quick way |
| `item` | one item, from stored relations to result rows |
| `spread` | joins that several tasks share, and the merge of their groups |

    sides ──► keys numbered ──► combinations, chunk by chunk ──► groups ──► finish, as of any query

Nothing is subtracted when windows move on: they are made of their panes each time.
"""

from __future__ import annotations
