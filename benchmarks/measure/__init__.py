"""How a run is measured and answers are compared.

| module | has |
| --- | --- |
| `job`, `jobs` | what goes to an engine's process and comes back; made from data |
| `keys` | what queries group by, and what can be rolled up from what |
| `digest` | one number per answer |
| `cpu`, `memory`, `machine` | processor time; memory by length of the stream; where it ran |
| `blocks` | processor seconds by block of code |
| `paired` | engines in turn, and the interval of their ratio |
| `table`, `figures`, `join_tables` | tables for people |
| `results` | what a result costs behind the merge, by sink |
| `walk` | how often the way of a record changes module |
"""

from __future__ import annotations
