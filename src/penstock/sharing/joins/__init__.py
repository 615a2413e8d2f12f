"""The plan of a join: which of its sides are aggregated before they are stored, and why. No numba, no Arrow.

| module | gives |
| --- | --- |
| `plans` | the 2^m plans of a join and their names: LAP, EAP10, … |
| `statistics` | what is known of its sides |
| `cost` | what a plan takes: nanoseconds a slide, bytes of state |
| `choice` | what was chosen, as data |
| `asked` | plans that a user asks for |
| `choose` | the cheapest plan |
| `stored` | sides whose groups are stored anyway |

    join ──► plans ──► JoinChoice, in the plan of its first stream ──► explain, `relations.sides`
"""

from __future__ import annotations
