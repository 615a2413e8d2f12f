"""Groups of closed windows into rows of results.

    groups ──► columns of the select list ──► HAVING ──► ORDER BY, LIMIT ──► a table, and the account of its windows

| module | does |
| --- | --- |
| `finisher` | keys and aggregates as operands and as columns |
| `finish` | the rows of a query |
| `ordering` | ORDER BY and LIMIT |
| `tally` | the account of windows |

May touch `runtime.merge.estimates`; `runtime.merge.item` and joins call it.
"""
