"""All the state there is: immutable segments, one manifest per batch that names them, and a lease.

    checkpoint/
      app.json       whose checkpoint this is, and the format of its files (`identity`)
      versions/      the app's queries and plans, a file for every change of them (`versions`)
      lease/         who may write (`lease`)
      files/         files that growing sources have met, in stream order (`arrivals`)
      segments/      partial aggregates, one checksummed file per task (`segments`)
      manifests/     one file per batch: what exists (`manifest`)
      windows/       the account of the newest closed windows, one file per query (`windows`)
      samples/       packed keys of some records, for the planner (`runtime.task.sampling`)
      decisions/     what was decided about batches that Spark has no log of (`runtime.batch.frames`, `runtime.engine`)
      staged/, memory/   results on their way to, or kept by, sinks without a folder of their own
      spark/         Spark's own offsets and commits

| module | has |
| --- | --- |
| `protocol`, `account` | what tasks tell the driver, and what manifests keep |
| `data`, `tags` | dataclasses as JSON that names no class or module |
| `checked`, `files` | small files: with a checksum, created once |
| `garbage` | removes what no manifest names |

May touch `relations` and `sharing`, whose plans it stores. The driver loads it, so the root imports no kernels.
"""
