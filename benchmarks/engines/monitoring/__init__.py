"""Engines that answer a dozen monitoring queries, each its own (`multiquery --data monitoring`).

| module | what it runs |
| --- | --- |
| `questions` | what is asked, also of `benchmarks.engines.penstock` |
| `arrow` | the reference: numpy and pyarrow's group_by |
| `duckdb`, `polars`, `clickhouse` | separate queries, as in `benchmarks.engines` |
| `spark` | Spark batch, separate queries on a cached table |
"""
