"""What users touch: the Python API and the command line. They put packages together and have no logic of their own.

| module | does |
| --- | --- |
| `api` | `App`: collects streams and queries, starts runs |
| `streams` | what a stream is made of in Python: tables, columns with types |
| `sessions`, `settings` | the Spark session that an app runs in; settings of a run, checked |
| `shown` | an app in a notebook |
| `cli` | the command line; its commands stand in `commands` |
| `sizes` | reads sizes and counts as people write them: 256KiB, 500k |
| `analysis` | runs an app for its counters alone: `explain --analyze` |
| `record_files` | writes records of a source to a file: `generate -o` |
| `state_view` | shows what a checkpoint holds |
| `pictures` | of a plan, and of the results of the demo; need matplotlib |
| `demo` | `make demo` |
| `prepare` | what is done once for an installation |
| `checkout` | finds `benchmarks/` and `experiments/` |

May touch every other package, but loads pyspark and matplotlib only when they are used.
"""
