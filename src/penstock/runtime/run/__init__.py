"""A run as a whole.

| module | does |
| --- | --- |
| `admission` | refuses what cannot run, before anything is started |
| `start` | opens the checkpoint and starts the batches |
| `changes` | says what may change about an app, and changes it |
| `run` | what users have in hand: wait, stop, progress, results |
| `results` | orders a query's rows, and hands them to pandas |
| `promised` | promises that are shorter than results take: a line of the log |
| `told` | what its log says |
| `shown` | a run and its account in a notebook |
| `active` | which runs of this process hold a checkpoint |
| `history`, `summary` | what a run remembers of its batches, and tells at its end |

May touch all of `runtime`.
"""

from __future__ import annotations
