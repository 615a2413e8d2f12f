"""One module for each benchmark, and the engines that it compares.

| module | has |
| --- | --- |
| `multiquery`, `contenders` | many aggregations on one stream; its engines |
| `packets` | monitoring queries on a packet trace |
| `aggjoin`, `join_contenders`, `join_goals` | two streams joined in windows; its engines; what is aimed at |
| `joinplans` | all plans of a join beside the one that is chosen |
| `planning`, `scaling` | how long plans take; what a record costs with more queries, data and cores |
| `startup` | how long commands take from call to prompt |
| `parts` | where penstock's time goes |
| `beside` | this checkout beside another one |
| `peers` | runs one engine in a process of its own |
"""

from __future__ import annotations
