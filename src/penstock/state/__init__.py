"""All the state there is: immutable segments, one manifest per batch that names them, and a lease.

    checkpoint/
      app.json       what runs here: identity, sources, slots (`identity`)
      versions/      the app's queries and plans, a file for every change of them (`state.versions`)
      lease/         who may write (`lease`)
      files/         files that growing sources have met, in stream order (`arrivals`)
      segments/      partial aggregates, one checksummed file per task (`segment`)
      manifests/     one file per batch: what exists (`manifest`)
      windows/       the account of the newest closed windows, one file per query (`windows`)
      decisions/     what was decided about batches of DataFrames (`runtime.batch.frames`)
      staged/, memory/   results on their way to, or kept by, sinks without a folder of their own
      spark/         Spark's own offsets and commits

All of it is data that names no class or module (`data`, `protocol`). Only what the newest manifest names exists;
everything else is removed (`garbage`).
"""
