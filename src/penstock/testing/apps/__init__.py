"""Random apps with data and settings, by seed.

| module | makes |
| --- | --- |
| `generators` | a whole case: stream, queries, settings |
| `random_promises` | a whole case where all queries promise a delay |
| `randomness` | dice |
| `random_values`, `random_stream`, `random_files` | columns, streams, files |
| `random_terms`, `random_text`, `random_windows`, `random_query` | expressions, clauses, windows, SELECTs |
| `random_promised_joins` | the same where they join with tables |
| `random_joins`, and `joins` with its parts | a whole case of joins: streams, tables, queries by a spec of the oracle |

May touch `testing` and what it may.
"""

from __future__ import annotations
