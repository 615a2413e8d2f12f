"""The entries of tables of bounded size, a module for each kind.

| module | has |
| --- | --- |
| `residents` | what all have in common |
| `direct` | one bucket for each hash |
| `recent` | chained; the least recently used makes room |
| `registry` | all of them by the name of their kind |

May touch `rows`, the plan and kernels.
"""

from __future__ import annotations
