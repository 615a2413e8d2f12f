"""What experiments share.

| module | has |
| --- | --- |
| `streams`, `captured` | generated streams, and captured packets in the same form |
| `counts` | numbers of groups as the smap paper tells of them, all else by chance |
| `trains` | packets in trains, as the smap paper's traffic has them |
| `probing`, `measure` | tables at work, compiled: collisions that happen, not those of a model |
| `collisions` | what the tables of smap's Fig. 7 to 12 do |
| `cycles` | plans for epochs of different lengths, and whole cycles at work |
| `report` | claims, tables, panels: what an experiment hands back |
| `summary` | claims as Markdown, for docs/reproduce.md |
| `pictures` | panels, drawn; needs the extra `plot` |
"""

from __future__ import annotations
