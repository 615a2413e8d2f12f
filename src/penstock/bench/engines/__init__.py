"""One module per engine, each a program: reads a `bench.job.Job`, answers it, prints a `bench.job.Answer`.

| module | what it runs |
| --- | --- |
| `penstock` | penstock itself, by its Python interface |
| `spark_streaming` | Structured Streaming, one streaming query per aggregation |
| `spark_grouping_sets` | Spark batch, one GROUPING SETS query |
| `duckdb` | separate queries, or one GROUPING SETS query (mode `grouping_sets`) |
| `polars` | lazy frames, collected together |
| `arrow` | pyarrow's group_by: the reference the answers are compared with, not a contender |

Peers run in an environment without pyspark and numba: these modules import only their engine, numpy and pyarrow.
"""
