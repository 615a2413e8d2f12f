"""Plans of a run.

| module | has |
| --- | --- |
| `planners` | who plans for a run; the observer that changes plans between batches |
| `waiting` | whether a run is long enough to be planned for |
| `first_look` | the planner of a run, made while its engine starts |
| `join_costs` | what joins cost on this machine |
| `joins` | plans of joins, chosen by samples and by what merge tasks count |
| `figures` | what says that data have changed, and what tasks took |
| `restoring` | what is stored, reconsidered: statistics of other ways to store, when a way stays |
| `replan` | the planner that looks at the data, before the first batch and after later ones |

May touch `profile`, `task` (for samples), `batch` and `sharing`.
"""

from __future__ import annotations
