"""Details of groups, where windows close and where runs are written.

| module | does |
| --- | --- |
| `reduced` | rows of finer relations become distinct counts, percentiles and their like |
| `listing` | rows that are frequent enough become rows of the result |
| `pruning` | rows of rare values are left out of a run |

May touch `runtime.merge`; `runtime.merge.windows` and `runtime.task` call it.
"""
