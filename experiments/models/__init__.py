"""Formulas of the papers that the engine does not plan with: what experiments compare its own with.

| module | gives |
| --- | --- |
| `problems` | problems with the papers' sizes and unit costs |
| `notation` | configurations read from the papers' notation, `ABCD(AB BCD)` |
| `rates` | straight lines for collision rates (smap, Sec. 5.2) |
| `costs` | costs of a record, an epoch and a cycle, as printed and as corrected (smap, Sec. 3.2 and 7.1) |
| `epoch_lengths` | when relations are flushed whose queries have epochs of different lengths (smap, Sec. 7.1) |
| `spaces` | memory of a given configuration, and the optimum of two levels (smap, Sec. 6.1) |
| `curves` | eviction curves as the aggregate-tree paper has them (Sec. III, VI, VII) |
| `join_costs` | unit-time costs of plans of a join, for any number of streams (aggregation-join, Sec. 6.3 and 7.1) |
| `join_operations` | better costs of a join's operations, each with its own constant |

They import `penstock.sharing`; nothing below `src/` imports them.
"""

from __future__ import annotations
