"""How a run is measured and answers are compared.

| module | has |
| --- | --- |
| `job`, `jobs` | what goes to an engine's process and comes back; made from data |
| `digest` | one number per answer |
| `cpu`, `memory`, `machine` | processor time; memory by length of the stream; where it ran |
| `profiled` | seconds by function |
| `table`, `figures`, `join_tables` | tables for people |
| `skipping` | what reading costs by source, all of it or picks |
| `walk` | how often the way of a record changes module |
"""

from __future__ import annotations
