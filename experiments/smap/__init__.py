"""Experiments of the smap paper, one module for each id.

| module | covers |
| --- | --- |
| `collision`, `costs` | collision rates; what tables cost |
| `allocation`, `choice` | space for given configurations; choosing phantoms |
| `real` | plans at work on captures |
| `peak_load`, `epochs` | limits on flushes; epochs of different lengths |
| `misestimation` | wrong numbers of groups |
| `common` | what they share: problems, plans, their real cost |
"""

from __future__ import annotations
