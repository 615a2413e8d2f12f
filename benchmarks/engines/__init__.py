"""One module per engine, each a program: reads a `benchmarks.measure.job.Job`, answers it, prints a
`benchmarks.measure.job.Answer`.

| module | what it runs |
| --- | --- |
| `penstock` | penstock itself, by its Python interface |
| `penstock_parts` | what its tasks do, without Spark, timed by part |
| `spark_streaming` | Structured Streaming, one streaming query per aggregation |
| `spark_grouping_sets` | Spark batch, one GROUPING SETS query |
| `spark_base_aggregate` | Spark batch, one aggregate by the finest keys, cached, and roll-ups from it |
| `flink` | Flink's Table API, streaming, one statement set |
| `duckdb` | separate queries, one GROUPING SETS query (mode `grouping_sets`), or roll-ups (mode `rolled_up`) |
| `polars` | lazy frames, collected together, or roll-ups |
| `clickhouse` | chdb, separate queries, or roll-ups |
| `arrow` | pyarrow's group_by: the reference the answers are compared with, not a contender |
| `joins` | a room: joins of two streams |
| `monitoring` | a room: a dozen queries of their own kinds |

Peers run in an environment without pyspark and numba: these modules import only their engine, numpy and pyarrow.
"""
