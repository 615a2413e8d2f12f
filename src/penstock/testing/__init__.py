"""What checks the engine, shipped so that users can check it too: oracle, random apps, reference tables.

| module | gives |
| --- | --- |
| `oracle` | the rows and accounts an app must produce, from DuckDB and plain Python |
| `columns`, `addresses`, `attributes` | the oracle's input: typed values, addresses, what queries compute of a record |
| `timeline`, `membership` | the oracle's time: batches and watermarks, windows by their definition |
| `answers`, `sums`, `database`, `duck` | the oracle's output: groups, exact sums, SQL |
| `simulation` | a second oracle, one record at a time, that checks the first one |
| `asserts` | comparison of results as multisets, and of accounts |
| `generators` | random apps with data and settings, by seed |
| `randomness`, `random_values`, `random_stream`, `random_files` | the generator's data: dice, values, columns, files |
| `random_terms`, `random_text`, `random_windows`, `random_query` | the generator's SQL: expressions to whole SELECTs |
| `faults` | a kit: runs of the command line that are killed, starved, damaged and started again; campaigns |
| `soak` | long running under load: nothing grows, every window comes once |
| `captures`, `mutations` | capture files written by hand, and damaged on purpose, by seed |
| `reference` | a direct-mapped table, one record at a time, as the papers describe it |
| `phantoms` | a tree of such tables, phantoms above queries, one record at a time |

Nothing here imports kernels, runtime or pyspark: an oracle that shares code with the engine proves nothing.
"""
