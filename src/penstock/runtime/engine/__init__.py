"""What drives micro-batches: Spark, or processes of penstock's own.

| module | does |
| --- | --- |
| `base` | what a run needs of an engine |
| `inputs` | what an app reads: sources, or a DataFrame |
| `places` | what tasks must reach, wherever they run |
| `spark`, `registered`, `source` | Spark as the engine; penstock's sources as Spark knows and reads them |
| `jobs` | jobs of Spark's that it need not plan |
| `slots` | how many tasks Spark can run at a time, as workers come and go |
| `process` | the engine without Spark |
| `batches` | decides batches and logs decisions, as Spark's streaming query would |
| `pool`, `zygote` | worker processes as the driver sees them; the process they are forked from |
| `once` | work in a thread that is awaited elsewhere |

May touch `runtime.batch` and all before it. Only `spark`, `jobs`, `registered`, `source` and `slots` load pyspark.
"""

from __future__ import annotations
