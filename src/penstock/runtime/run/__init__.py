"""A run as a whole.

| module | does |
| --- | --- |
| `start` | opens the checkpoint and starts the batches |
| `changes` | says what may change about an app, and changes it |
| `run` | what users have in hand: wait, stop, progress, results |
| `active` | which runs of this process hold a checkpoint |
| `history`, `summary` | what a run remembers of its batches, and tells at its end |

May touch all of `runtime`.
"""

from __future__ import annotations
