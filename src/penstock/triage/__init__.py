"""Promised delays: which records of a burst are read, and when (seed data-triage).

| module | says |
| --- | --- |
| `plan.py` | what the scheduler is told and what it decides, as data; the fixed step of `summarise` |
| `deadlines.py` | what each deadline still needs, whether a step is forced, and which one suits it |
| `draft.py`, `owed.py` | what a batch takes of streams with promises, and of the others |
| `scheduler.py` | the next batch: `planned` |
| `ranges.py` | steps as ranges of records; a step between two powers of two is a mixture |
| `costs.py` | what batches cost, learnt from their timings |
| `lessons.py` | the first batches of a run, from which costs are learnt |
| `picks.py` | which record of 2^k neighbours is read, the same in every task and replay |

Pure: no engine, no clock. Times come in as arguments, decisions go out as data.
"""
