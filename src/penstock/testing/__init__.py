"""What checks the engine, shipped so that users can check it too.

| room, module | gives |
| --- | --- |
| `oracle` | the rows and accounts that an app must produce, by DuckDB and plain Python |
| `asserts` | comparison of results as multisets, and of accounts |
| `apps` | random apps with data and settings, by seed |
| `faults` | a kit: runs that are killed, starved, damaged and started again; campaigns |

May touch `logical` and `sources`, and in `faults` `state`, but neither kernels nor runtime nor pyspark: an oracle that
shares code with the engine proves nothing. What only penstock's own tests need is in `tests/support`.
"""
