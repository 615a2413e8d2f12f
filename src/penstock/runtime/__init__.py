"""From a plan to results: tasks, merges, and the engines that run them. Only here does penstock run on
pyspark; `sinks` and `app` load it where somebody asks for a DataFrame.

| room | does |
| --- | --- |
| root | `settings`, `epoch` (what a batch knows), `machine`, `work`, `meter` (counters), `preload`, `sent` |
| `spark` | starts Spark and its Python workers |
| `expressions` | computes expressions on columns |
| `tables` | holds groups: tables that evict, leaves, the forest of them |
| `merge` | puts the groups of closed windows together and finishes them into rows |
| `profile` | measures streams and the machine, for the planner |
| `task` | turns the records of a split into a segment |
| `batch` | decides, closes and commits micro-batches |
| `engine` | drives micro-batches: Spark, or processes of penstock's own |
| `run` | opens a checkpoint, starts a run and sums it up |

Each room may touch those above it, and the packages before this one (`tests/unit/test_imports.py`).
"""
