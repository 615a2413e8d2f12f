"""Estimates of what was not read: simulations behind the rules of promised delays (seed data-triage).

| module | has |
| --- | --- |
| `samples` | groups of a window estimated from the engine's picks, with their standard errors |
| `reservoir` | Algorithm L, the paper's own sample |
| `overload` | one step for a window against reading exactly first, dropping, and dropping re-weighted |
| `intervals` | how often an interval of two standard errors holds the truth |
| `__main__` | prints all of it: `python -m experiments.triage` |

The picks are the engine's (`penstock.triage.picks`); windows, groups and errors are arrays here, many trials at once.
"""

from __future__ import annotations
