"""How the tables of a configuration share memory.

| module | gives |
| --- | --- |
| `registry` | all ways by name; the heuristics of seed smap |
| `exhaustive` | the best division into hundredths |
| `lagrange` | memory at a price: quick, and a bound for all others |
| `fptas` | within 1 + ε of the best |
| `all_or_nothing` | the best for uniform data |
| `peak_load` | a limit on what the flush at the end of a task costs |
"""

from __future__ import annotations
