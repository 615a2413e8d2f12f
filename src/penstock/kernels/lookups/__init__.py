"""Compiled loops that find the rows of a table that records belong to.

| module | does |
| --- | --- |
| `codes` | numbers, and addresses, to their codes: equality |
| `places` | between which points of a sorted list a value lies: ranges |
| `cover` | which rows cover which elementary intervals |

May touch the root of `kernels`.
"""

from __future__ import annotations
