"""Promised delays: which records of a burst are read, and when (seed data-triage).

| module | says |
| --- | --- |
| `picks.py` | which record of 2^k neighbours is read, the same in every task and replay |

Pure: no engine, no clock. Times come in as arguments, decisions go out as data.
"""
