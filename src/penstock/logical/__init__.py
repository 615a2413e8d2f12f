"""Logical queries: what was asked, typed and immutable.

| module, room | has |
| --- | --- |
| `types` | types of columns and results |
| `expressions`, `render` | typed expressions, and their text |
| `window` | windows and panes |
| `query` | streams, queries, and the set of them that is an app |
| `owed` | streams of their own for queries that promise no delay, beside others that do |
| `values` | operators, functions, casts and aggregates: how they are typed (may touch `aggregates`) |
| `resolve` | makes all of this from parsed text (may touch `lang`, `aggregates`, `values`) |

Loads neither pyspark nor numba nor Arrow: planning must run anywhere, in milliseconds.
"""
