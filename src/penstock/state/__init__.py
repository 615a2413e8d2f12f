"""All the state there is: immutable segments, one manifest per batch that names them, and a lease.

    checkpoint/
      app.json       what runs here: the app's digest, slots, identity
      lease/         who may write (`lease`)
      segments/      partial aggregates, one checksummed file per task (`segment`)
      manifests/     one file per batch: what exists (`manifest`)
      spark/         Spark's own offsets and commits

Only what the newest manifest names exists; everything else is removed (`garbage`).
"""
