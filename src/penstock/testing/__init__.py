"""What checks the engine, shipped so that users can check it too: oracle, random apps, reference tables.

| module | gives |
| --- | --- |
| `oracle` | the rows and accounts an app must produce, from DuckDB and plain Python |
| `addresses`, `columns`, `timeline`, `duck` | the oracle's parts: addresses, typed values, watermarks, SQL |
| `asserts` | comparison of results as multisets, and of accounts |
| `generators` | random apps with data and settings, by seed |
| `randomness`, `random_values`, `random_stream`, `random_text` | the generator's parts: dice, values, columns, SQL |
| `faults` | runs of the command line that are killed, damaged and started again |
| `reference` | a direct-mapped table, one tuple at a time, as the papers describe it |

Nothing here imports kernels, runtime or pyspark: an oracle that shares code with the engine proves nothing.
"""
