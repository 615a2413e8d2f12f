"""Joins of two streams, a module per engine: reads a `benchmarks.measure.job.JoinJob`, prints its answer.

| module | what it runs |
| --- | --- |
| `penstock` | penstock itself, on Spark or without (mode `process`) |
| `duckdb` | window by window, in its best form or with late aggregation |
| `spark` | Structured Streaming's stream–stream join, then an aggregation |
| `flink` | window TVFs joined, then a window aggregation |
| `tasks` | penstock's tasks alone, beside decoding and a probe a record |
| `arrow` | pyarrow's group_by and join: the reference the answers are compared with |
"""

from __future__ import annotations
