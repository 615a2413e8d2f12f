"""Segments: partial aggregates in columnar files. Tasks write them, merges read them.

| module | does |
| --- | --- |
| `groups` | groups as canonical columns: what goes in and comes out |
| `write` | writes a segment |
| `index` | says where the columns of each block stand |
| `read` | reads blocks, by panes and slots; says what the format is |
| `opened` | keeps segments open |
| `vocabulary` | joins the dictionaries of many runs |

May touch the root of `state` and `kernels`; `read`, `index` and `opened` load no kernels, since the driver uses them.
"""

from __future__ import annotations
