"""Relations: what is aggregated and stored. Below planning, so that tables, segments and plans mean the same by it.

| module | gives |
| --- | --- |
| `component` | the numbers that keys are made of |
| `layout` | where components stand in packed words |
| `relation` | relations, their parts and states |
"""

from __future__ import annotations
