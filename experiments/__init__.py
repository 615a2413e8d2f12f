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
| `tree_records`, `tree_streams` | epochs of records for the aggregate-tree paper: generated, and a log |
| `tree_tables` | aggregate trees at work, in the engine's own tables |
| `tree_plans` | the ways to plan them that are compared, SLC among them |
| `tree_eviction`, `tree_memory`, `tree_queries` | one module for each id; its claims and parts in `tree_*` beside it |
| `summary` | claims as Markdown, for docs/reproduce.md |
| `models` | formulas of the papers that the engine does not plan with |
| `pictures` | panels, drawn; needs the extra `plot` |

A paper's claim is a question. An experiment answers it with numbers and the inputs behind them, also where the answer
is no.
"""
