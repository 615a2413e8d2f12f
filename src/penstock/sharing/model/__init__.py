"""What tables pass on and cost.

| module | gives |
| --- | --- |
| `unit_costs` | nanoseconds of a probe, an insert, a fold on this machine |
| `partial_groups` | what the groups of a task cost behind their leaves |
| `collision` | collision rates of direct-mapped tables |
| `popularity` | how often groups come |
| `eviction` | what a table passes on, as a curve of its entries |
| `problem` | what choosers and allocators are given |
| `figures` | a configuration with its figures, as plain lists |
| `flow` | what flows through a tree, and its cost |
| `statistics` | what a planner asks of a stream |
| `kinds` | kinds of tables: what each costs, keeps and replaces |
| `engine_problem` | the problem of a running engine, in nanoseconds |
"""

from __future__ import annotations
