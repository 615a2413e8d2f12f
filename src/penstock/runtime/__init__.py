"""SharedPlan to Spark: the only package that plans pyspark work.

In execution order: `session` (and `java`, `daemon`, `pages`) start Spark; `engine` opens checkpoint, sinks and
`inputs`, takes up the app as a `version` (`changes`, `amend`), and starts a `run`. `fused` is the Python data source
whose tasks run `lfta` (with `ingest`, `times`, `selection`, `evaluate`, `folding`, `tree`, `leaf`, `coarse`);
`frames` runs the same tasks over DataFrames; what is decided about a batch stands in `offsets`. `driver` is the
foreachBatch that keeps the manifest: it takes references from its `feed`, `hfta` and `merge_plan` choose the windows
that close, `merge_job` has them merged and finished in Spark tasks (`closing`, `merge`, `finish`, `ordering`),
`compaction` keeps segments few.
"""
