"""What can feed what.

| module | gives |
| --- | --- |
| `grain` | what a relation groups by, and which relation follows from which |
| `lattice` | the grains of a stream's queries, and the parts of their keys |
| `feeding_graph` | relations as bit sets, best feeders first; candidates for phantoms |
| `configuration` | a choice of relations as a forest: which feeds which |
| `notation` | a configuration as text |
"""

from __future__ import annotations
