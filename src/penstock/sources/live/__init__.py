"""Live streams: records that arrive by the clock, and reading as few of them as a burst leaves time for.

| module | what it does |
| --- | --- |
| `contract` | what a live source can tell: what has arrived, and how its times stand to the clock |
| `preparing` | live sources made ready for a run |
| `picking` | reads the picks of a range, without decoding the rest where the source can |
| `times` | which times are a sign that time goes on; the running greatest of them |
| `course` | that greatest time within a range, for tasks that read little of it |
| `replay` | `replay:`, any source by the clock |
"""

from __future__ import annotations
