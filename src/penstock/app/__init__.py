"""What users touch: the Python API and the command line. They put packages together and have no logic of their own.

| module | does |
| --- | --- |
| `api` | `App`: collects streams and queries, starts runs |
| `sessions`, `settings` | the Spark session that an app runs in; settings of a run, checked |
| `cli`, `options` | the commands, and options that several of them have |
| `analysis` | runs an app for its counters alone: `explain --analyze` |
| `state_view` | shows what a checkpoint holds |
| `plan_picture`, `picture` | draw a plan, and the results of the demo; need matplotlib |
| `demo` | `make demo` |
| `checkout` | finds `benchmarks/` and `experiments/` |

May touch every other package, but loads pyspark and matplotlib only when they are used.
"""
