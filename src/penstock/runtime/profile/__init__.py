"""What is known of data and machine, for the planner.

| module | gives |
| --- | --- |
| `survey` | groups of any relation, counted in a sample |
| `turns` | how panes follow one another in it |
| `statistics` | a survey and the counters of tasks, as the planner asks for them |
| `joined` | what sides of joins hold |
| `calibrate` | what all of that costs on this machine |
| `entries` | what a record costs in tables and leaves |
| `fitting` | the same, corrected by what tasks took |
| `partials` | what a partial group costs behind its leaf |
| `rollups` | and what is made of it when windows close |
| `trials` | groups to measure both on |

May touch `sharing` and `kernels`; `trials` runs tables, segments and merges. `runtime.task.sampling` takes the
samples.
"""

from __future__ import annotations
