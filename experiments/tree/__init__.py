"""Experiments of the aggregate-tree paper.

| module | has |
| --- | --- |
| `eviction`, `memory`, `queries` | one experiment each: evictions; cost and memory; number of queries |
| `eviction_claims`, `memory_claims` | what the paper says of the first two |
| `evicted`, `compared`, `uniform`, `example` | their parts |
| `records`, `streams` | epochs of records: generated, and a log |
| `local` | locality, measured on a log and drawn |
| `tables` | aggregate trees at work, in the engine's own tables |
| `plans` | the ways to plan them that are compared |
"""

from __future__ import annotations
