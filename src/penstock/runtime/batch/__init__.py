"""The micro-batch: what is decided about it, its tasks, and the driver that closes, compacts and commits.

| module | does |
| --- | --- |
| `offsets` | decides: positions, version, where added queries begin |
| `fused`, `job` | cut batches out of penstock's own sources and run a split; what they must know for it |
| `frames` | the same for DataFrames; the only module here that knows Spark |
| `feed` | hands the driver what was decided and what the tasks reported |
| `executor` | what an engine must be able to do |
| `outcome` | reports and errors on their way from a task |
| `driver` | one batch, from reports to the committed manifest and published results |
| `context`, `held` | what all steps of a batch work with; the checkpoint that a run holds |
| `close` | which windows close, level by level; results without rows |
| `merge_job` | the tasks that merge, finish and stage them |
| `compaction` | many small segments into few |
| `report` | what observers are told |

May touch `runtime.task` and all before it.
"""

from __future__ import annotations
