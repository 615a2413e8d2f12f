"""Two streams joined by rows that live at several instants: the quick way of a join.

| module | does |
| --- | --- |
| `fit` | which joins are joined so |
| `rows` | the rows of a side for all instants of an item, each read once, with the instants that it lives at |
| `folding` | what pairs of rows add up to: pair by pair, or by cells of key and group |
| `joined` | keys and groups numbered, pairs folded, groups by instant |

Whatever is not taken here, `join.combined` joins, window by window; both give the same groups.
"""

from __future__ import annotations
