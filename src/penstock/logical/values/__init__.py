"""Values in SQL: how operators, functions, casts, aggregates and literals are typed.

| module | types |
| --- | --- |
| `scalars` | any expression; calls the others |
| `constants` | literals |
| `predicates` | IS, BETWEEN, IN, LIKE |
| `functions`, `casts` | scalar functions; CAST |
| `aggregates` | calls of aggregate functions, with FILTER |
| `attributes` | what can be grouped by and aggregated |
| `type_rules` | what may be compared and computed with what |
| `placed` | how a complaint gets its place in the text |

May touch `lang`, `logical` and `aggregates`; values themselves are computed in `runtime.expressions`.
"""

from __future__ import annotations
