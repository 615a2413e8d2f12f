"""Which phantoms to keep.

| module | gives |
| --- | --- |
| `search` | prices sets of phantoms; what a chooser hands back |
| `siblings` | unions of siblings, which a tree may be given next |
| `growing` | a tree while it is being built |
| `aggregate_tree` | trees for dozens and hundreds of queries |
| `printed_tree` | the same as the paper prints it, slowly |
| `choice` | all choosers by name: greedy ones, all sets, the tree |
| `fronts` | queries that do better without a table of their own |
"""

from __future__ import annotations
