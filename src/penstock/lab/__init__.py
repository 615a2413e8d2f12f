"""The papers' tables and figures, run again: `penstock reproduce`.

    streams, captured ──► plans (sharing) ──► measure: real collisions ──► claims, tables, a picture
                              └──────────► cost of the model ─────────────────┘

| module | gives |
| --- | --- |
| `command` | experiments by id, what is printed, what is JSON |
| `report` | claims, tables, panels: what an experiment hands back |
| `streams`, `captured` | generated streams, and captured packets in the same form |
| `probing`, `measure` | tables at work, compiled: collisions that happen, not those of a model |
| `smap` | what the experiments of the smap paper share: problems, plans, their real cost |
| `cycles` | plans for epochs of different lengths, and whole cycles at work |
| `smap_*` | one module for each id |
| `summary` | claims as Markdown, for docs/reproduce.md |
| `pictures` | panels, drawn; needs the extra `plot` |

A paper's claim is a question. An experiment answers it with numbers and the inputs behind them, also where the answer
is no.
"""
