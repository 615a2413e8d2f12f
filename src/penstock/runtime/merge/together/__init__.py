"""What queries have in common that close together: found out once, not query by query.

| module | does |
| --- | --- |
| `readings` | which queries are read together: once for a version of the app |
| `asked` | which windows close, and where: once for all relations whose blocks have the same panes |

With dozens of queries on one stream, all of them ask the same in every batch.
"""

from __future__ import annotations
