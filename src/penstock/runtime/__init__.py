"""SharedPlan to Spark: the only package that plans pyspark work.

In execution order: `session` (and `java`, `daemon`) start Spark; `fused` is the Python data source whose tasks run
`lfta` (with `ingest`, `selection`, `evaluate`, `folding`, `leaf`, `front`); `driver` is the foreachBatch that keeps
the manifest; `merge_plan` cuts closed windows into items, `merge` and `finish` answer them in Spark tasks;
`engine` starts and ends a run.
"""
