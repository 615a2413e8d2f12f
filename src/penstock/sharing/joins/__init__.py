"""The plan of a join: which of its sides are aggregated before they are stored, and why. No numba, no Arrow.

| module | gives |
| --- | --- |
| `plans` | the 2^m plans of a join and their names: LAP, EAP10, … |
| `asked` | plans that a user asks for |

    join ──► plans ──► JoinChoice, in the plan of its first stream ──► explain, `relations.sides`
"""

from __future__ import annotations
