"""Experiments of the aggregation-join paper: its operator, record at a time, and what the paper says of its cost.

    events ──► operator (running: upkeep, joining) ──► AS_out
    points ──► calibration, measure ──► compared: predicted cost beside measured time ──► claims

| module | has |
| --- | --- |
| `cost`, `threeway`, `showcases` | one experiment each: two streams; three streams; inputs where each plan is best |
| `ranking`, `figures` | claims and tables that the first two share; their pictures |
| `points`, `compared` | the points of Fig. 4 and 5; models and measurement at each of them |
| `measure`, `calibration` | plans at work and their times; constants of the cost functions, by running |
| `operator`, `events` | a join query and its plans for Python; increments and decrements of windows |
| `running` | Algorithm 1, compiled: one loop for all plans |
| `upkeep`, `joining` | its parts: window update, AS update, multisets; window join, AS join, AS update of the output |
| `layout` | the columns of the operator's arrays |

The engine does not use the operator: it puts windows together from panes and subtracts nothing. That both give the
same is what `tests/property/test_paper_operator.py` shows.
"""

from __future__ import annotations
