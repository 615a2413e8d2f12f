"""From a plan to results: tasks, merges, and the Spark jobs that run them. The only package that knows pyspark.

| room | does |
| --- | --- |
| root | `settings`, `epoch` (what was decided about a batch), `machine`, `work` (counters) |
| `spark` | starts Spark and its Python workers |
| `expressions` | computes expressions on columns |
| `tables` | holds groups: states, tables that evict, exact leaves, the forest of them |
| `merge` | puts groups of closed windows together and finishes them into rows |
| `profile` | measures streams and the machine, for the planner |
| `task` | turns the records of a split into a segment |
| `batch` | decides, runs and commits micro-batches |
| `run` | opens a checkpoint, and starts and sums up a run |

Each room imports only those above it (`tests/unit/test_imports.py`).
"""
