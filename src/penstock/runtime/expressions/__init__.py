"""Expressions on columns.

| module | does |
| --- | --- |
| `operands` | columns of values, each with what is NULL |
| `evaluate` | goes through an expression |
| `functions`, `casts`, `calendar` | scalar functions; CAST; dates and hours |
| `lookups` | what records find in tables, with the room `matching` |
| `folders`, `known_tables` | where tables are kept; tables as resolving an app asks for them |
| `refreshing` | tables that are read again: which version the records of a batch see |

May touch `logical`, `kernels`, `sources` and `state`. Tasks use it for WHERE and computed columns, merges for HAVING
and the select list.
"""

from __future__ import annotations
