"""From statements to typed queries. `app.resolve_app` is the way in.

| module | resolves |
| --- | --- |
| `app` | a whole app |
| `catalog` | names of streams and queries, in any order |
| `streams` | CREATE STREAM |
| `nesting` | WITH and subqueries, as hidden queries |
| `select` | one SELECT, clause by clause |
| `scopes` | what a name means, before and after grouping |
| `joins` | several inputs in FROM |
| `promises` | LIMIT DELAY TO, and ON OVERLOAD KEEP |
| `grouping`, `windows`, `outputs`, `ordering` | GROUP BY; windows; the select list; ORDER BY and LIMIT |

May touch `lang`, `logical`, `logical.values` and `aggregates`.
"""

from __future__ import annotations
