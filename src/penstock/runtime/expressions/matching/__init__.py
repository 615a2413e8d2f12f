"""Which rows of a table belong to a record: what `runtime.expressions.lookups` finds them with.

| module | does |
| --- | --- |
| `columns` | columns of a table as operands |
| `keys` | values of equality columns as codes |
| `ranges` | bounds as places in one sorted list, values of records as places in it |
| `classes` | rows by what finds them: classes, and the class of each record |

May touch the rest of `runtime.expressions`, and `kernels.lookups`.
"""

from __future__ import annotations
