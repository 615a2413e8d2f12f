"""The papers' tables and figures, run again: `penstock reproduce`.

    kit.streams, kit.captured ──► plans (sharing) ──► kit.measure: real collisions ──► claims, tables, a picture
                                      └──────────► cost of the model ─────────────────┘

| room, module | has |
| --- | --- |
| `command` | experiments by id, what is printed, what is JSON |
| `kit` | what experiments share: streams, tables at work, reports, pictures |
| `models` | formulas of the papers that the engine does not plan with |
| `smap` | experiments of the smap paper |
| `tree` | experiments of the aggregate-tree paper |
| `join` | the operator of the aggregation-join paper, and experiments with it |
| `triage` | simulations of the estimates of the data-triage paper, and of ours |

Outside the wheel: `penstock reproduce` finds it in a checkout. May touch all of penstock; nothing below `src/` imports
it. A paper's claim is a question. An experiment answers it with numbers and the inputs behind them, also where the
answer is no.
"""
