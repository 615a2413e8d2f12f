"""Plans: which tables stand before the leaves of a stream's queries, and why. No pyspark, no numba.

    queries ──► graph ──► model ──► allocate ──► choose ──► planner ──► SharedPlan ──► explain

| room, module | gives |
| --- | --- |
| `graph` | which relation can feed which |
| `model` | what tables pass on and cost |
| `allocate` | how tables share memory |
| `choose` | which phantoms to keep |
| `joins` | which sides of joins are aggregated early |
| `plan` | the plan: data that tasks run |
| `options` | what a plan is asked to be like |
| `planner` | the cheapest plan for a stream |
| `predicted` | what a plan is expected to do, relation by relation |
| `explain_joins` | the plans of joins explained |
| `explain`, `explain_text`, `explain_html` | a plan explained as data, as text, and for notebooks |

Each imports only those above it.
"""

from __future__ import annotations
